"""Run every benchmark, or the one that is named: `python -m benchmarks [NAME]`."""

import importlib
import sys
from pathlib import Path


def main() -> None:
    subjects = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    chosen = sys.argv[1:] or subjects
    for name in chosen:
        if name not in subjects:
            sys.exit(f"unknown benchmark '{name}': choose from {', '.join(subjects)}")
    for name in chosen:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
