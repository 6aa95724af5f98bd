"""The tables of the page: every trial counts once, by its last line."""

from pathlib import Path
from typing import Any

from gradveil.journal import Journal
from tests.faults.tables import last_lines, write_tables

MADE = {"gradveil": "0", "torch": "2", "cores": 2, "processor": "a processor"}
PAGE = "".join(f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n" for name in ("summary", "corrupted", "killed"))


def cut(seed: int, faults: list[str], kills: int, fault: str | None) -> dict[str, Any]:
    shared = {"command": "train", "process": "forked", "slowest_end": 0.5, "made_by": MADE}
    return {"kind": "signals", "seed": seed, "faults": faults, "kills": kills, "fault": fault, **shared}


def test_a_mended_trial_counts_by_its_last_line() -> None:
    lines: list[dict[str, Any]] = [
        {"seed": 1, "fault": "it hangs"},
        {"seed": 2, "fault": None},
        {"seed": 1, "fault": None},
    ]
    assert [line["fault"] for line in last_lines(lines, "seed")] == [None, None]


def test_the_page_has_the_counts(tmp_path: Path) -> None:
    kills = Journal(tmp_path / "kills.jsonl")
    kills.append(cut(0, ["SIGKILL", "SIGTERM"], 2, None))
    kills.append(cut(1, ["SIGTERM"], 1, "it hangs"))
    files = Journal(tmp_path / "corrupted.jsonl")
    for seed, outcome in enumerate(("same", "refused", "not read")):
        files.append(
            {"seed": seed, "format": "capsule", "outcome": outcome, "fault": None, "seconds": 1.0, "made_by": MADE}
        )
    inputs = Journal(tmp_path / "journal.jsonl")
    counts = {"tried": 200, "read": 50, "refused": 150, "failed": 0, "faults": [], "slowest": 0.25}
    inputs.append({"input": "policy", "seed": 0, **counts, "made_by": MADE})
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    write_tables(tmp_path, page)
    text = page.read_text()
    assert "| malformed inputs | 200 | 200 | 0.2 s |" in text
    assert "| damaged files | 3 | 3 | 1.0 s |" in text
    assert "| SIGKILL | 1 | 1 | – |" in text
    assert "| SIGTERM | 2 | 1 | it hangs |" in text
    assert "| capsule | 3 | 1 | 1 | 1 | 0 | 0 | 1.0 s |" in text
    assert "| train | SIGKILL, SIGTERM, SIGINT | 3 | 2 | 1 | 1 | it hangs |" in text
    assert "old" not in text
