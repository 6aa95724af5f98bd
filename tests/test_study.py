"""A study runs what its journal lacks, writes every result as it comes, and goes on after a kill."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gradveil.errors import DivergenceError, KnowledgeError, SettingsError
from gradveil.journal import Journal
from gradveil.results import provenance
from gradveil.study import WorkItem, find_missing, run_items, run_missing, silent, without_provenance
from gradveil.workers import Report, Workers


@dataclass(frozen=True)
class Square:
    """Square a number; some cannot be squared."""

    number: int

    def run(self, report: Report) -> dict[str, Any]:
        report(1, 1)
        if self.number == 7:
            raise DivergenceError("7 diverges")
        if self.number == 8:
            raise SettingsError("8 is wrong")
        return {"square": self.number**2}


def make_items(*numbers: int) -> list[WorkItem]:
    return [
        WorkItem({"trial": {"number": number}}, Square(number), f"item {number}", {DivergenceError: "diverged"})
        for number in numbers
    ]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_missing_is_run_and_written(journal: Journal, workers: int) -> None:
    journal.append({"trial": {"number": 2}, "square": "kept"})
    reports: list[tuple[str, int, int]] = []
    with Workers(workers) as crew:
        run_missing(journal, make_items(1, 2, 3, 1), crew, lambda *report: reports.append(report), "items")
        lines = journal.read()
        run_missing(journal, make_items(3, 2, 1), crew, silent, "items")
    assert journal.read() == lines
    assert lines[0] == {"trial": {"number": 2}, "square": "kept"}
    assert sorted(line["trial"]["number"] for line in lines) == [1, 2, 3]
    assert {"trial": {"number": 3}, "square": 9, "provenance": provenance()} in lines
    assert [report for report in reports if report[0] == "items"] == [("items", 1, 2), ("items", 2, 2)]
    assert {name for name, _, _ in reports} <= {"items", "item 1", "item 3"}


def test_an_error_that_is_a_result_becomes_a_line_and_others_end_the_study(journal: Journal) -> None:
    with Workers(1) as crew:
        run_missing(journal, make_items(7, 1), crew, silent, "items")
        assert without_provenance(journal.read()[0]) == {"trial": {"number": 7}, "diverged": "7 diverges"}
        assert journal.read()[0]["provenance"] == provenance()
        with pytest.raises(SettingsError, match="8 is wrong"):
            run_missing(journal, make_items(2, 8, 3), crew, silent, "items")
    assert [line["trial"]["number"] for line in journal.read()] == [7, 1, 2]
    assert not issubclass(KnowledgeError, DivergenceError)


def test_work_is_told_apart_as_the_study_says() -> None:
    lines = [{"cell": {"part": "speed", "images": [0, 1]}, "rows": []}]
    item = WorkItem({"cell": {"part": "budget", "images": (0, 1)}}, Square(1))
    assert find_missing(lines, [item]) == [item]
    assert find_missing(lines, [item], lambda line: line["cell"]["images"]) == []
    assert find_missing(lines, []) == []


def test_every_line_is_handed_on(journal: Journal) -> None:
    taken: list[dict[str, Any]] = []
    with Workers(1) as crew:
        run_items(journal, make_items(1, 2), crew, silent, "items", taken.append)
    assert taken == journal.read()


SLOW = """
import sys, time
from dataclasses import dataclass
from pathlib import Path
from gradveil.journal import Journal
from gradveil.study import WorkItem, run_missing, silent
from gradveil.workers import Workers

@dataclass(frozen=True)
class Wait:
    number: int
    def run(self, report):
        time.sleep(0.05)
        return {"done": self.number}

with Workers(1) as crew:
    items = [WorkItem({"number": number}, Wait(number)) for number in range(int(sys.argv[2]))]
    run_missing(Journal(Path(sys.argv[1])), items, crew, silent, "items")
"""


def test_a_killed_study_goes_on_where_it_was(journal: Journal) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(journal.path), "1000"])
    while len(journal.read()) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = journal.read()
    subprocess.run([sys.executable, "-c", SLOW, str(journal.path), str(len(done) + 2)], check=True, timeout=60)
    written = [without_provenance(line) for line in journal.read()]
    assert written == [{"number": number, "done": number} for number in range(len(done) + 2)]
