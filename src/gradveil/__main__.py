"""`python -m gradveil` is the command `gradveil`."""

from gradveil.stops import watch_the_end, watched


def main() -> None:
    """Run the command line; signals are watched before it is imported."""
    try:
        with watched():
            from gradveil.cli import main as run

            run()
    finally:
        watch_the_end()


if __name__ == "__main__":
    main()
