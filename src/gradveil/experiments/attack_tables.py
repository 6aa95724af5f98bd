"""The tables of the attacks' strength, from the journal."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from gradveil.experiments.attack_cells import Cell, measured
from gradveil.experiments.markdown import write_table
from gradveil.experiments.old_rows import ADVANTAGES, count_striking, judge, pool, sound, write_figure
from gradveil.metrics import ClusterInterval, cluster_interval

Key = tuple[str, str, str, str, str, str]
Place = tuple[str, str, str, str]
MOMENTS = 17
MODEL = "one model"
"""The one cluster of a place: its images are attacked on one model."""
Way = list[tuple[float, float]]
COLUMNS = (
    "data",
    "model",
    "phase",
    "arm",
    "attack",
    "n",
    "PSNR of T(x), dB",
    "advantage, T(x)",
    "advantage, aligned x",
    "PSNR of x, dB",
    "≥ 3 dB: T(x) · x",
    "finding",
    "SSIM of T(x)",
    "core-seconds an image",
)
READING = (
    "Means ± half the 95% interval over images, medians of advantages in brackets; no interval below 6 images. "
    "Every place is one model of one seed, so no interval speaks of another. T(x) is what was fed; chance for "
    "aligned x has flip, shift and lighting given away. Leak: the lower bound for T(x) or aligned x is above 1 dB. "
    'No leak found would need both upper bounds below 1 dB on 32 images or more; all else is undecided. "≥ 3 dB" '
    "counts images and is no finding."
)


@dataclass(frozen=True)
class AttackLine:
    """The rows of one attack in one place, and how many images were asked for; `refused` if it cannot be used there."""

    key: Key
    rows: tuple[Mapping[str, Any], ...]
    asked: int
    refused: bool = False

    def scores(self, name: str) -> dict[int, float]:
        """Return a figure of every image whose attack did not fail."""
        return {row["image"]: row[name] for row in sound(self.rows) if row.get(name) is not None}

    def figure(self, name: str) -> ClusterInterval | None:
        values = list(self.scores(name).values())
        return cluster_interval(values, [MODEL] * len(values)) if values else None

    @property
    def was_run(self) -> bool:
        return bool(self.rows) or self.refused

    @property
    def seconds(self) -> float:
        return float(mean(row["seconds"] for row in self.rows))

    def texts(self) -> list[str]:
        """Write the line as the table shows it; images that were not attacked are said so."""
        failed = sum(row["status"] != "ok" for row in self.rows)
        count = f"{len(self.rows)}" if len(self.rows) == self.asked else f"{len(self.rows)} of {self.asked}"
        head = [*self.key[1:], count + (f", {failed} failed" if failed else "")]
        if len(self.rows) == failed:
            why = "cannot be used" if self.refused else "failed"
            return [*head, why, *[""] * (len(COLUMNS) - len(head) - 1)]
        fed, original = (pool([(MODEL, row) for row in self.rows], target) for target in ADVANTAGES)
        striking = " · ".join(str(count_striking(self.rows, target)) for target in ADVANTAGES)
        return [
            *head,
            write_mean(self.figure("psnr_transformed")),
            write_figure(fed, signed=True),
            write_figure(original, signed=True),
            write_mean(self.figure("psnr_original")),
            striking,
            judge(fed, original, failed),
            write_mean(self.figure("ssim_transformed"), digits=2),
            f"{self.seconds:.1f}",
        ]


def write_mean(figure: ClusterInterval | None, digits: int = 1) -> str:
    """Write a mean with half its 95% interval, or a dash."""
    return "–" if figure is None else figure.text(digits)


def make_lines(cells: Sequence[Cell], entries: Sequence[Mapping[str, Any]]) -> list[AttackLine]:
    """Gather the rows of the journal under the cells that were asked for, in their order."""
    asked: dict[Key, int] = defaultdict(int)
    rows: dict[Key, list[Mapping[str, Any]]] = defaultdict(list)
    refused = set()
    for cell in cells:
        key = cell.part, cell.data, cell.model, cell.phase, cell.arm, cell.attack
        asked[key] += len(cell.images)
        found = find_entry(cell, entries)
        if found is not None:
            rows[key] += found["rows"]
            refused |= {key} if "refused" in found else set()
    return [AttackLine(key, tuple(rows[key]), count, key in refused) for key, count in asked.items()]


def find_entry(cell: Cell, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Find what was measured for a cell, whichever part it was measured for."""
    wanted = measured(cell.to_record())
    return next((entry for entry in entries if measured(entry["cell"]) == wanted), None)


def make_paths(cells: Sequence[Cell], entries: Sequence[Mapping[str, Any]]) -> dict[Place, dict[str, Way]]:
    """Average the PSNR on the way over images: for each model and phase, for each attack, seconds and dB.

    Of an ensemble the way is that of the member that won, stretched over the time of all.
    """
    gathered: dict[tuple[Place, str], list[tuple[float, Way]]] = defaultdict(list)
    for cell in cells:
        entry = find_entry(cell, entries)
        if entry is not None and "paths" in entry:
            seconds = [row["seconds"] for row in entry["rows"]]
            gathered[cell.place, cell.attack] += zip(seconds, entry["paths"], strict=True)
    found: dict[Place, dict[str, Way]] = defaultdict(dict)
    shares = np.linspace(0, 1, MOMENTS).tolist()
    for (place, attack), ways in gathered.items():
        lasting = mean(seconds for seconds, _ in ways)
        scores = map(mean, zip(*(interpolate(way, shares) for _, way in ways), strict=True))
        found[place][attack] = [(lasting * share, score) for share, score in zip(shares, scores, strict=True)]
    return found


def interpolate(way: Way, shares: Sequence[float]) -> list[float]:
    known, scores = np.array(way).T
    return [float(score) for score in np.interp(shares, known, scores)]


def render_markdown(parts: Mapping[str, Sequence[AttackLine]]) -> str:
    """Write one table for each part, and below it what was not run."""
    text = ["# The strength of the attacks", "", READING, ""]
    for part, lines in parts.items():
        text += [f"## {part}", "", *write_table(COLUMNS, [line.texts() for line in lines if line.was_run])]
        missing = [line for line in lines if not line.was_run]
        text += ["", f"Not run: {list_missing(missing)}."] if missing else []
        text.append("")
    return "\n".join(text)


def list_missing(lines: Sequence[AttackLine]) -> str:
    """Name what was not run, the attacks on one thing together."""
    places: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        _, data, model, phase, arm, attack = line.key
        places[f"{data} {model} {phase} {arm}"].append(attack)
    return "; ".join(f"{place} ({', '.join(attacks)})" for place, attacks in places.items())
