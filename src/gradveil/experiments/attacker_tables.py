"""`standard` against `modern` and against its earlier versions: the tables, from the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradveil.experiments.attackers import Cell
from gradveil.experiments.versions import render_appendix
from gradveil.metrics import ClusterInterval, cluster_interval, paired_interval, rate_interval

Entry = Mapping[str, Any]
Place = tuple[str, ...]
MODEL = 0
"""All images of a place are attacked on one model: one cluster, unless they come in batches."""
Key = tuple[int, int]
"""The cluster of an image, and the image."""
FIGURES = {"transformed": "T(x)", "original": "aligned x"}
NAMES = {"standard, lowest loss": "standard, by the lowest loss"}
"""What attackers are called on the page, where the journal has another name."""
EXCESS = "excess"
"""Over the updates of other images of the class, dB; lines that were run before this was kept have none."""
PLACE = "| data | model | arm | phase | batch | seed | "


@dataclass(frozen=True, eq=False)
class Ran:
    """What one attacker did at one place."""

    cell: Cell
    entry: Entry
    scores: dict[str, dict[Key, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Entry) -> "Ran":
        """Read a line of the journal; scores are gains over chance of every image that was rebuilt.

        The images of one batch are rebuilt together, so they are a cluster.
        """
        cell = Cell(**entry["cell"])
        scores: dict[str, dict[Key, float]] = {name: {} for name in (*FIGURES, EXCESS)}
        for place, row in enumerate(entry["rows"]):
            if row["status"] == "ok":
                key = (place // cell.batch if cell.batch > 1 else MODEL, row["image"])
                scores["transformed"][key] = row["psnr_transformed"] - row["floor_transformed"]
                scores["original"][key] = row["aligned_original"] - row["aligned_floor_original"]
                if row.get("control") is not None:
                    scores[EXCESS][key] = row["statistic"] - row["control"]
        return cls(cell, entry, scores)

    def mean(self, figure: str) -> str:
        scores = self.scores[figure]
        clusters = [cluster for cluster, _ in scores]
        return cluster_interval(list(scores.values()), clusters).text(signed=True) if scores else "–"

    def picked_out(self) -> str:
        """Write how often x is picked out of its crowd, where that was kept."""
        known = [row for row in self.entry["rows"] if row.get("identified_original") is not None]
        if not known:
            return "–"
        found = sum(row["identified_original"] for row in known)
        low, high = rate_interval(found, len(known))
        return f"{found} of {len(known)} ({100 * low:.0f}–{100 * high:.0f}%)"

    @property
    def seconds(self) -> float:
        return float(self.entry["processor_seconds"])


def compare(ours: Ran, theirs: Ran, figure: str) -> ClusterInterval | None:
    """Compare two attackers on the same images."""
    return paired_interval(ours.scores[figure], theirs.scores[figure])


def word(found: ClusterInterval | None) -> str:
    """Write a paired difference, and whether it is shown."""
    if found is None:
        return "–"
    text = found.text(signed=True)
    if found.low is None or found.high is None:
        return text
    return f"{text}, {'more' if found.low > 0 else 'less' if found.high < 0 else 'not shown'}"


def by_place(runs: Sequence[Ran], part: str) -> dict[Place, dict[str, Ran]]:
    """Put the attackers at the same place together."""
    found: dict[Place, dict[str, Ran]] = {}
    for one in runs:
        if one.cell.part == part:
            count = f", {one.cell.gradients} gradients" if one.cell.gradients else ""
            found.setdefault(one.cell.place, {})[f"{one.cell.attacker}{count}"] = one
    return found


def render_means(places: Mapping[Place, Mapping[str, Ran]]) -> list[str]:
    """Write what every attacker reached, and what it cost."""
    scores = "T(x), dB over chance | aligned x, dB over chance | over wrong updates, dB | x picked out of 20"
    lines = [f"{PLACE}attacker | n | {scores} | gradients an image | processor seconds an image |", "|---" * 14 + "|"]
    for place, runs in places.items():
        for name, one in runs.items():
            shown = " | ".join([*(one.mean(figure) for figure in (*FIGURES, EXCESS)), one.picked_out()])
            count = f"{len(one.scores['transformed'])} of {one.cell.images}"
            cost = f"{one.entry['gradients']} | {one.seconds:.1f}"
            lines.append(f"| {' | '.join(place)} | {NAMES.get(name, name)} | {count} | {shown} | {cost} |")
    return lines


def render_pairs(places: Mapping[Place, Mapping[str, Ran]], ours: str = "standard") -> list[str]:
    """Write how far `ours` is ahead of the others, image by image, and its share of their time."""
    lines = [
        f"{PLACE}against | n | T(x), dB | aligned x, dB | over wrong updates, dB | share of its time |",
        "|---" * 12 + "|",
    ]
    for place, runs in places.items():
        for name, theirs in runs.items():
            if name == ours or ours not in runs:
                continue
            found = {figure: compare(runs[ours], theirs, figure) for figure in (*FIGURES, EXCESS)}
            count = 0 if found["transformed"] is None else found["transformed"].count
            share = f"{runs[ours].seconds / theirs.seconds:.2f}" if theirs.seconds else "–"
            lines.append(
                f"| {' | '.join(place)} | {NAMES.get(name, name)} | {count} | {word(found['transformed'])} | "
                f"{word(found['original'])} | {word(found[EXCESS])} | {share} |"
            )
    return lines


def render_models(runs: Sequence[Ran]) -> list[str]:
    """Write what the attacked weights had learnt."""
    tested = [one for one in runs if one.entry["test_accuracy"] is not None]
    known = {(*one.cell.place[:4], str(one.cell.seed)): one.entry["test_accuracy"] for one in tested}
    rows = [f"| {' | '.join(place)} | {100 * accuracy:.1f} |" for place, accuracy in sorted(known.items())]
    return ["| data | model | arm | phase | seed | test accuracy, % |", "|---" * 6 + "|", *rows]


TITLES = {
    "modern": "`standard` against breaching's `modern`, at about equal time",
    "versions": "`standard` against its earlier versions",
    "told": "`standard`, told of the policy, against itself, not told",
}


def render_markdown(entries: Sequence[Entry]) -> str:
    """Write the tables of all parts that have any results."""
    runs = [Ran.of(entry) for entry in entries]
    text = [
        "# How strong is `standard`?",
        "",
        "Gains over chance in dB of PSNR, mean ± half the 95% interval over images, or over batches of them; "
        "differences are image by image "
        "(“more” and “less”: the interval excludes 0). One model each: no interval speaks of another seed. Over wrong "
        "updates: the aligned score, the larger of T(x) and x, less that from updates of other images of the class; 0 "
        "on average without a leak. Chance picks 1 in 20. A dash: from before these were kept.",
        "",
    ]
    for part, title in TITLES.items():
        places = by_place(runs, part)
        if places:
            text += [f"## {title}", "", *render_pairs(places), "", *render_means(places), ""]
    return "\n".join([*text, "## The models", "", *render_models(runs), "", render_appendix(entries)])
