"""What an attacker gains by being told the defence: the table, from the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradveil.errors import SettingsError
from gradveil.experiments.markdown import write_table
from gradveil.experiments.told_defences import ToldStudy
from gradveil.experiments.versions import render_appendix, require_one_version
from gradveil.metrics import ClusterInterval, cluster_interval, paired_interval, rate_interval
from gradveil.results import record, to_json, write_file

COLUMNS = (
    "arm",
    "phase",
    "attack",
    "told",
    "n",
    "T(x), dB",
    "x, dB",
    "x picked out",
    "of how many",
    "verdict",
    "told − not told at x, dB",
)
COST_COLUMNS = ("arm", "accuracy", "training time", "what a told attacker uses")
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class ToldLine:
    """One arm, phase and attack: gains over chance, how often x is picked out, and the verdict."""

    arm: str
    phase: str
    attack: str
    told: bool
    failed: int
    transformed: ClusterInterval
    original: ClusterInterval
    identified: int
    crowd: int
    outcome: str
    gain: ClusterInterval | None

    def texts(self) -> list[str]:
        low, high = rate_interval(self.identified, self.original.count)
        share = f"{100 * self.identified / self.original.count:.0f}% ({100 * low:.0f}–{100 * high:.0f})"
        count = f"{self.original.count}" + (f" ({self.failed} failed)" if self.failed else "")
        return [
            f"`{self.arm}`",
            self.phase,
            f"`{self.attack}`",
            "" if self.arm == "none" else "yes" if self.told else "no",
            count,
            self.transformed.text(1, signed=True),
            self.original.text(1, signed=True),
            share,
            f"{self.crowd}",
            self.outcome,
            "" if self.gain is None else self.gain.text(1, signed=True),
        ]


def make_lines(entries: Sequence[Entry]) -> list[ToldLine]:
    """Make a line of each cell that has a sound row."""
    cells = [(entry["trial"], cell) for entry in entries for cell in entry["cells"]]
    found = [make_line(trial, cell, cells) for trial, cell in cells]
    return [line for line in found if line is not None]


def make_line(trial: Entry, cell: Entry, cells: Sequence[tuple[Entry, Entry]]) -> ToldLine | None:
    """Put the rows of a cell together; one of a told attacker is compared with that of one who is not."""
    rows = sound_rows(cell)
    if not rows:
        return None
    seeds = [trial["seed"]] * len(rows)
    other = next((two for one, two in cells if is_untold_twin(trial, cell, one, two)), None)
    return ToldLine(
        trial["arm"],
        cell["phase"],
        cell["attack"],
        trial["told"],
        len(cell["rows"]) - len(rows),
        cluster_interval([row["advantage_transformed"] for row in rows], seeds),
        cluster_interval([row["advantage_original"] for row in rows], seeds),
        sum(row["identified_original"] for row in rows),
        max(row["crowd"] for row in rows),
        cell["outcome"],
        None if other is None else paired_interval(by_image(trial, cell), by_image(trial, other)),
    )


def sound_rows(cell: Entry) -> list[Entry]:
    return [row for row in cell["rows"] if row["status"] == "ok" and row["identified_original"] is not None]


def by_image(trial: Entry, cell: Entry) -> dict[tuple[Any, Any], float]:
    return {(trial["seed"], row["image"]): row["advantage_original"] for row in sound_rows(cell)}


def is_untold_twin(trial: Entry, cell: Entry, other: Entry, other_cell: Entry) -> bool:
    """Tell whether the other cell is the same but for what the attacker is told."""
    same = all(cell[name] == other_cell[name] for name in ("phase", "attack"))
    return same and trial["told"] and not other["told"] and {**trial, "told": False} == other


def render_markdown(lines: Sequence[ToldLine], entries: Sequence[Entry]) -> str:
    """Write the tables."""
    trial, study = entries[0]["trial"], entries[0]["study"]
    notes = dict.fromkeys(line.original.note for line in lines if line.original.note)
    text = [
        "# What an attacker gains by being told the defence",
        "",
        f"{study['data']}, `{trial['model']}`, seed {trial['seed']}, {trial['images']} test images, one gradient of "
        f"one image each; clients train on up to {trial['private']:,} images for {study['training']['epochs']} epochs, "
        f"and `learned` learns from up to {trial['public']:,} others. No arm has the base augmentation, so T(x) is x. "
        "Gains are over the best guess without an update, aligned by flip, shift and lighting, in dB, mean ± "
        "half the 95% interval. Picked out: the true image fits best among so many of its class, by x alone; in "
        "brackets the exact 95% interval. The last column compares the same images.",
        "",
        *(f"Note: {note}." for note in notes),
        "",
        *write_table(COLUMNS, [line.texts() for line in lines]),
        "",
        "## What it costs",
        "",
        *write_table(COST_COLUMNS, render_costs(entries)),
        "",
    ]
    return "\n".join(text)


def render_costs(entries: Sequence[Entry]) -> list[list[str]]:
    """Write the accuracy of every arm, its training time in times that of none, and what is used of it."""
    plain = next((entry["training_seconds"] for entry in entries if entry["trial"]["arm"] == "none"), None)
    return [
        [
            f"`{entry['trial']['arm']}`",
            f"{100 * entry['test_accuracy']:.1f}%",
            "" if plain is None else f"{entry['training_seconds'] / plain:.1f}×",
            "; ".join(entry["used"].values()),
        ]
        for entry in entries
        if entry["trial"]["told"]
    ]


def write_told_tables(out: Path, study: ToldStudy) -> tuple[Path, dict[str, Any]]:
    """Write the tables and the record of all trials."""
    entries = study.journal.read()
    if not entries:
        raise SettingsError(f"{study.journal.path} has no results: no table was written")
    require_one_version(entries, study.journal.path)
    path = out / "told-defences.md"
    write_file(path, "\n".join([render_markdown(make_lines(entries), entries), render_appendix(entries)]))
    written = record("reproduce told-defences", {"threads": 1}, {"trials": entries})
    write_file(out / "told-defences.json", to_json(written))
    return path, written
