"""Cells of the tables: which units make one up, and what their rows say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from gradveil.experiments.paper.quirks import attack_quirks
from gradveil.experiments.paper.scales import Network, Scale
from gradveil.experiments.paper.study import Results
from gradveil.experiments.paper.units import AttackUnit, TrainUnit
from gradveil.metrics import ClusterInterval, cluster_interval, mean_interval, paired_interval

Key = tuple[int, int]
"""The seed of the model and the image."""
ENOUGH = 6
"""With fewer values there is no spread to speak of."""


def train_units(network: Network, arm: str, scale: Scale, quirks: tuple[str, ...] = ()) -> list[TrainUnit]:
    """Train a network under an arm, once for each seed."""
    return [TrainUnit(network.data, network.model, arm, network.training, seed, quirks) for seed in scale.seeds]


def attack_units(
    models: Sequence[TrainUnit],
    arm: str,
    attack: str,
    scale: Scale,
    *,
    quirks: Sequence[str] = (),
    images: int | None = None,
    group: int | None = None,
    told: bool = False,
) -> list[AttackUnit]:
    """Attack the images of a cell in groups, on the model of each seed."""
    count = scale.images if images is None else images
    size = scale.group if group is None else group
    return [
        AttackUnit(
            model,
            arm,
            attack,
            first,
            min(size, count - first),
            steps=scale.steps.get(attack),
            restarts=scale.restarts.get(attack),
            told=told,
            floor_images=scale.floor_images,
            quirks=attack_quirks(attack, quirks),
        )
        for model in models
        for first in range(0, count, size)
    ]


def with_fields(units: Sequence[AttackUnit], **fields: Any) -> list[AttackUnit]:
    """Change the same fields of several units."""
    return [replace(unit, **fields) for unit in units]


@dataclass(frozen=True)
class Cell:
    """The rows of some units, as far as they were run: sound ones by seed and image, and how many failed.

    `wanted` is how many images the units have. Figures are in dB; those without rows are None.
    """

    rows: dict[Key, dict[str, Any]]
    failed: int
    wanted: int

    @classmethod
    def of(cls, units: Sequence[AttackUnit], results: Results) -> "Cell":
        """Collect the rows."""
        found: dict[Key, dict[str, Any]] = {}
        failed = 0
        for unit in units:
            line = results.find(unit)
            for row in [] if line is None else line["rows"]:
                if row["status"] == "ok":
                    found[unit.model.seed, row["image"]] = row
                else:
                    failed += 1
        return cls(found, failed, sum(unit.count for unit in units))

    @property
    def count(self) -> int:
        return len(self.rows)

    def values(self, name: str) -> dict[Key, float]:
        """Return one figure of every row.

        `gain` is PSNR less its floor, pixel by pixel, and `advantage` the larger of the aligned ones at T(x) and x.
        `excess` is the aligned score less what updates of other images of the class score: without a leak it is 0 on
        average.
        """
        if name == "gain":
            return {key: row["psnr_transformed"] - row["floor_transformed"] for key, row in self.rows.items()}
        if name == "advantage":
            both = ("advantage_transformed", "advantage_original")
            return {key: max(row[each] for each in both) for key, row in self.rows.items()}
        if name == "excess":
            known = {key: row for key, row in self.rows.items() if row["control"] is not None}
            return {key: row["statistic"] - row["control"] for key, row in known.items()}
        return {key: row[name] for key, row in self.rows.items() if row[name] is not None}

    def interval(self, name: str) -> ClusterInterval | None:
        """Return the mean of a figure with its interval over images and seeds."""
        values = self.values(name)
        return cluster_interval(list(values.values()), [seed for seed, _ in values]) if values else None

    def mean(self, name: str) -> float | None:
        found = self.interval(name)
        return None if found is None else found.mean

    def spread(self, name: str) -> float | None:
        """Return the standard deviation over images, if there are enough."""
        values = list(self.values(name).values())
        return mean_interval(values).std if len(values) >= ENOUGH else None

    def less(self, other: "Cell", name: str) -> ClusterInterval | None:
        """Compare a figure with that of another cell on the images of both: this less the other."""
        return paired_interval(self.values(name), other.values(name))

    def chance(self) -> float:
        """Return how often a blind guess picks the image out of its crowd."""
        return fmean(1 / row["crowd"] for row in self.rows.values() if row["crowd"] is not None)

    def share(self, name: str) -> tuple[int, int]:
        """Count the rows where something is true, and the rows where it is known."""
        known = [row[name] for row in self.rows.values() if row[name] is not None]
        return sum(known), len(known)

    def seeds(self) -> int:
        return len({seed for seed, _ in self.rows})


def accuracy_of(models: Sequence[TrainUnit], results: Results) -> float | None:
    """Return the mean test accuracy of a model over its seeds, in %; None if none was trained."""
    found = [line["test_accuracy"] for model in models if (line := results.find(model)) is not None]
    return 100 * sum(found) / len(found) if found else None


def says_diverged(models: Sequence[TrainUnit], results: Results) -> bool:
    return any(results.diverged(model) for model in models)
