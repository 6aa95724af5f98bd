"""Run the fault harness for long: each command goes on where its journal in FOLDER ends; `table` writes the page."""

import argparse
import os
from importlib import import_module
from pathlib import Path

# Commands are forked from this process; numerical libraries must start no thread in it.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PARTS = {"run": "fuzz", "corrupt": "corrupt", "kills": "kill_runs", "load": "load"}
"""The module of each command; one is imported alone, because the others may need what it must not have imported."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("command", choices=(*PARTS, "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("page", type=Path, nargs="?", default=Path("docs/reliability.md"))
    parser.add_argument("--minutes", type=float, default=10)
    asked = parser.parse_args()
    if asked.command == "table":
        from tests.faults.tables import write_tables

        write_tables(asked.folder.resolve(), asked.page)
    else:
        asked.folder.mkdir(parents=True, exist_ok=True)
        import_module(f"tests.faults.{PARTS[asked.command]}").run(asked.folder, asked.minutes)


if __name__ == "__main__":
    main()
