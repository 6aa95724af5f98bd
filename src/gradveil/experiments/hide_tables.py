"""Does a policy hide the original from someone who knows it? The table, from the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.experiments.policies_hide import PHASES
from gradveil.metrics import ClusterInterval, cluster_interval, rate_interval

COLUMNS = (
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

    def text(self) -> str:
        """Write the share with its exact 95% interval.

        >>> Share(10, 200).text()
        '5% (2–9)'
        """
        low, high = rate_interval(self.found, self.count)
        return f"{100 * self.found / self.count:.0f}% ({100 * low:.0f}–{100 * high:.0f})"


@dataclass(frozen=True)
class HideLine:
    """One arm in one phase, all seeds together: gains over chance at x, and how often x is picked out of its class."""

    arm: str
    phase: str
    accuracies: tuple[float, ...]
    failed: int
    plain: ClusterInterval
    aligned: ClusterInterval
    identified: Share
    swapped: ClusterInterval
    swapped_identified: Share

    def texts(self) -> list[str]:
        accuracy = "" if self.phase == "init" else f"{100 * sum(self.accuracies) / len(self.accuracies):.0f}%"
        count = f"{self.aligned.count}" + (f" ({self.failed} failed)" if self.failed else "")
        return [
            f"`{self.arm}`",
            self.phase,
            accuracy,
            f"{self.aligned.clusters}",
            count,
            self.plain.text(1, signed=True),
            self.aligned.text(1, signed=True),
            self.identified.text(),
            self.swapped.text(1, signed=True),
            self.swapped_identified.text(),
        ]


def make_lines(entries: Sequence[Entry]) -> list[HideLine]:
    """Put the seeds of every arm together, in the order of the journal."""
    arms = dict.fromkeys(entry["trial"]["arm"] for entry in entries)
    return [
        line
        for phase in PHASES
        for arm in arms
        if (line := make_line(arm, phase, [entry for entry in entries if entry["trial"]["arm"] == arm])) is not None
    ]


def make_line(arm: str, phase: str, entries: Sequence[Entry]) -> HideLine | None:
    """Put the seeds of one arm together; without any sound row there is no line."""
    every = [(entry["trial"]["seed"], row) for entry in entries for row in entry["phases"][phase]["rows"]]
    rows = [(seed, row) for seed, row in every if row["status"] == "ok" and row["identified_original"] is not None]
    swapped = [(entry["trial"]["seed"], one) for entry in entries for one in entry["phases"][phase]["swapped"]]
    if not rows or not swapped:
        return None
    seeds = [seed for seed, _ in rows]
    return HideLine(
        arm,
        phase,
        tuple(entry["test_accuracy"] for entry in entries),
        len(every) - len(rows),
        cluster_interval([row["psnr_original"] - row["floor_original"] for _, row in rows], seeds),
        cluster_interval([row["advantage_original"] for _, row in rows], seeds),
        Share(sum(row["identified_original"] for _, row in rows), len(rows)),
        cluster_interval([one["swapped_gain"] for _, one in swapped], [seed for seed, _ in swapped]),
        Share(sum(one["swapped_identified"] for _, one in swapped), len(swapped)),
    )


def render_markdown(lines: Sequence[HideLine], entries: Sequence[Entry]) -> str:
    """Write the table."""
    trial, study = entries[0]["trial"], entries[0]["study"]
    notes = dict.fromkeys(line.aligned.note for line in lines if line.aligned.note)
    text = [
        "# Does a policy hide the original from someone who knows it?",
        "",
        f"The attack `learned` on {study['data']}, `{trial['model']}`: the attacker knows the arm, not its draws, and "
        f"learns from up to {trial['public']:,} public images what clients release. Clients train on up to "
        f"{trial['private']:,} others, {study['training']['epochs']} epochs; test images are attacked, one gradient of "
        "one image each. Gains are over the best guess without an update, in dB, mean ± half the 95% interval. "
        '"As it lies" compares pixel by pixel; "aligned" after the best flip, shift and lighting. Picked out: of 20 '
        "images of its class the true one fits best, by the aligned score; chance 5%; in brackets the exact 95% "
        "interval. Swapped is the wrong-gradient control: the picture rebuilt from an update against the next attacked "
        "image of the class, its aligned gain over chance, and how often that image is picked out of the others "
        " (chance one in 19 where 20 images of a class are attacked). A policy stands on top of crop and "
        "flip unless it says `no-base`.",
        "",
        *(f"Note: {note}." for note in notes),
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    return "\n".join([*text, *["| " + " | ".join(line.texts()) + " |" for line in lines], ""])
