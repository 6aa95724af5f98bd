"""`python -m tests.faults run FOLDER --minutes M` fuzzes and keeps a journal; `table FOLDER PAGE` writes the table."""

import argparse
import logging
import resource
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import torch

from gradveil.journal import Journal
from gradveil.results import provenance, write_file
from tests.faults.fuzz import fuzz, limit_memory
from tests.faults.readers import readers

EXAMPLES = 200
LEAST = 600
"""Inputs that every class gets before the classes share the time evenly."""
MEMORY = 6.0
START, END = "<!-- fuzzed: begin -->", "<!-- fuzzed: end -->"


def run(folder: Path, minutes: float) -> None:
    """Try one class after the other, with its next seed, until the time is over; the journal says where it was."""
    torch.set_num_threads(1)
    limit_memory(MEMORY)
    logging.getLogger("gradveil").setLevel(logging.ERROR)
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / "journal.jsonl")
    seeds, tried, seconds = Counter[str](), Counter[str](), Counter[str]()
    for line in journal.read():
        count(line, seeds, tried, seconds)
    classes = readers()
    stop = time.monotonic() + 60 * minutes
    while time.monotonic() < stop:
        reader = min(classes, key=lambda one: (min(LEAST, tried[one.name]), seconds[one.name]))
        started = time.monotonic()
        outcome = fuzz(reader, EXAMPLES, seeds[reader.name])
        line = {
            "input": reader.name,
            "seed": seeds[reader.name],
            **outcome.to_record(),
            "seconds": round(time.monotonic() - started, 3),
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "made_by": provenance(),
        }
        journal.append(line)
        count(line, seeds, tried, seconds)
        print(f"{reader.name}: {outcome.tried} tried, {outcome.failed} failed {outcome.faults[:1]}", flush=True)


def count(line: dict[str, Any], seeds: Counter[str], tried: Counter[str], seconds: Counter[str]) -> None:
    """Add one line of the journal to what every class has had."""
    seeds[line["input"]] = max(seeds[line["input"]], line["seed"] + 1)
    tried[line["input"]] += line["tried"]
    seconds[line["input"]] += line.get("seconds", 0)


def make_table(lines: list[dict[str, Any]]) -> list[str]:
    """Write one line for each class of inputs, and their sum."""
    grouped: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        grouped[line["input"]].append(line)
    rows = ["| input | tried | read | refused in one line | neither | worst case |", "|---|---|---|---|---|---|"]
    for name, own in grouped.items():
        counts = [sum(line[key] for line in own) for key in ("tried", "read", "refused", "failed")]
        fault = next((fault for line in own for fault in line["faults"]), None)
        worst = fault or f"{max(line['slowest'] for line in own):.1f} s"
        rows.append(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} | {worst} |")
    total = [sum(line[key] for line in lines) for key in ("tried", "read", "refused", "failed")]
    rows.append(f"| **all** | {' | '.join(f'**{count:,}**' for count in total)} | |")
    return rows


def table(folder: Path, page: Path) -> None:
    """Put the table of a journal into a page, between its marks."""
    lines = Journal(folder / "journal.jsonl").read()
    made = lines[-1]["made_by"]
    note = (
        f"\nWorst case: the longest time that one input took, on a busy machine. Peak memory "
        f"{max(line['peak_megabytes'] for line in lines):,} MB. gradveil {made['gradveil']}, torch {made['torch']}, "
        f"one core of {made['processor']}; journal: `{folder.relative_to(page.parent.resolve())}/journal.jsonl`."
    )
    text = page.read_text()
    before, after = text.partition(START)[0], text.partition(END)[2]
    write_file(page, "\n".join([before + START, *make_table(lines), note, END]) + after)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("page", type=Path, nargs="?", default=Path("docs/reliability.md"))
    parser.add_argument("--minutes", type=float, default=10)
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked.folder, asked.minutes)
    else:
        table(asked.folder.resolve(), asked.page)


if __name__ == "__main__":
    main()
