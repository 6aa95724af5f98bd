"""`python -m gradveil` is the command `gradveil`."""

from gradveil.stops import watched


def main() -> None:
    """Run the command line; signals are watched before it is imported."""
    with watched():
        from gradveil.cli import main as run

        run()


if __name__ == "__main__":
    main()
