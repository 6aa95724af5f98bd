"""Does a policy hide the original from someone who knows it? The lines of the table, from the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.experiments.policies_hide import ATTACKS, PHASES, trials
from gradveil.metrics import ClusterInterval, cluster_interval, rate_interval

COLUMNS = (
    "model",
    "attack",
    "arm",
    "phase",
    "accuracy on plain test images",
    "seeds",
    "n",
    "x as it lies, dB",
    "aligned x, dB",
    "picked out of 20",
    "swapped: dB",
    "swapped: picked out",
)
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    found: int
    count: int

    def __float__(self) -> float:
        return self.found / self.count

    def text(self) -> str:
        """Write the share with its exact 95% interval.

        >>> Share(10, 200).text()
        '5% (2–9)'
        """
        low, high = rate_interval(self.found, self.count)
        return f"{100 * float(self):.0f}% ({100 * low:.0f}–{100 * high:.0f})"


@dataclass(frozen=True)
class HideCell:
    """What one line of the table is of."""

    model: str
    attack: str
    arm: str
    phase: str

    def holds(self, entry: Entry) -> bool:
        return trial_of(entry) == (self.model, self.attack, self.arm)


@dataclass(frozen=True)
class HideLine:
    """One model, attack and arm in one phase, all seeds together: gains over chance at x, and how often x is found."""

    cell: HideCell
    accuracies: tuple[float, ...]
    failed: int
    plain: ClusterInterval
    aligned: ClusterInterval
    identified: Share
    swapped: ClusterInterval
    swapped_identified: Share

    def texts(self) -> list[str]:
        cell = self.cell
        accuracy = "" if cell.phase == "init" else f"{100 * sum(self.accuracies) / len(self.accuracies):.0f}%"
        count = f"{self.aligned.count}" + (f" ({self.failed} failed)" if self.failed else "")
        return [
            f"`{cell.model}`",
            cell.attack,
            f"`{cell.arm}`",
            cell.phase,
            accuracy,
            f"{self.aligned.clusters}",
            count,
            self.plain.text(1, signed=True),
            self.aligned.text(1, signed=True),
            self.identified.text(),
            self.swapped.text(1, signed=True),
            self.swapped_identified.text(),
        ]


def trial_of(entry: Entry) -> tuple[str, str, str]:
    trial = entry["trial"]
    return trial["model"], trial["attack"], trial["arm"]


def make_lines(entries: Sequence[Entry]) -> list[HideLine]:
    """Put the seeds of every model, attack and arm together, in the order of the trials."""
    planned = {(one.model, one.attack, one.arm): None for one in trials()}
    found = dict.fromkeys(trial_of(entry) for entry in entries)
    arms = dict.fromkeys(arm for _, _, arm in (*planned, *found))
    order = {
        (model, attack, arm): None
        for model in dict.fromkeys(key[0] for key in found)
        for arm in arms
        for attack in ATTACKS
    }
    cells = [HideCell(*key, phase) for phase in PHASES for key in order if key in found]
    lines = (make_line(cell, [entry for entry in entries if cell.holds(entry)]) for cell in cells)
    return [line for line in lines if line is not None]


def make_line(cell: HideCell, entries: Sequence[Entry]) -> HideLine | None:
    """Put the seeds of one cell together; without any sound row there is no line."""
    every = [(entry["trial"]["seed"], row) for entry in entries for row in entry["phases"][cell.phase]["rows"]]
    rows = [(seed, row) for seed, row in every if row["status"] == "ok" and row["identified_original"] is not None]
    swapped = [(entry["trial"]["seed"], one) for entry in entries for one in entry["phases"][cell.phase]["swapped"]]
    if not rows or not swapped:
        return None
    seeds = [seed for seed, _ in rows]
    return HideLine(
        cell,
        tuple(entry["test_accuracy"] for entry in entries),
        len(every) - len(rows),
        cluster_interval([row["psnr_original"] - row["floor_original"] for _, row in rows], seeds),
        cluster_interval([row["advantage_original"] for _, row in rows], seeds),
        Share(sum(row["identified_original"] for _, row in rows), len(rows)),
        cluster_interval([one["swapped_gain"] for _, one in swapped], [seed for seed, _ in swapped]),
        Share(sum(one["swapped_identified"] for _, one in swapped), len(swapped)),
    )
