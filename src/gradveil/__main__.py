"""`python -m gradveil` is the command `gradveil`."""

from gradveil.stops import watch_the_edges, watched


def main() -> None:
    """Run the command line; signals are watched before it is imported."""
    watch_the_edges()
    with watched():
        from gradveil.cli import main as run

        run()


if __name__ == "__main__":
    main()
