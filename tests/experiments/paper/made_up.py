"""Made-up results: what a journal would hold if attacks found this or that."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradveil.experiments.paper.study import Line, Results
from gradveil.experiments.paper.units import AttackUnit, ScoreUnit, TrainUnit, Unit

LAYERS = ("stem.weight", "first.weight", "last.weight", "head.weight")


def row(image: int, psnr: float, floor: float, gain: float, shallow: float = 0.5) -> dict[str, Any]:
    """Make a row whose aligned gains are `gain` at T(x) and 1 dB less at x."""
    ends = (shallow, shallow, 0.9, 0.9)
    return {
        "image": image,
        "status": "ok",
        "psnr_transformed": psnr,
        "psnr_original": psnr - 1,
        "floor_transformed": floor,
        "floor_original": floor,
        "advantage_transformed": gain,
        "advantage_original": gain - 1,
        "identified_original": gain > 2,
        "identified": gain > 2,
        "crowd": 20,
        "statistic": gain,
        "control": 0.0,
        "layers": {"steps": [0, 10], **{name: [0.0, end] for name, end in zip(LAYERS, ends, strict=True)}},
    }


def rows(unit: AttackUnit, psnr: float, floor: float, gain: float, shallow: float = 0.5) -> list[dict[str, Any]]:
    """Make the rows of a unit: around the given figures, some 0.1 dB up or down."""
    found = []
    for image in range(unit.first, unit.first + unit.count):
        shift = 0.1 * (image % 3 - 1)
        found.append(row(image, psnr + shift, floor, gain + shift, shallow))
    return found


def line(unit: Unit, **fields: Any) -> Line:
    return {"key": unit.key, "unit": unit.to_record(), "versions": unit.versions(), **fields}


def trained(unit: TrainUnit, accuracy: float, images: int = 10_000) -> Line:
    """Make the line of a training of two epochs."""
    curves = [
        {
            "epoch": epoch,
            "train_loss": 1.0 / epoch,
            "train_accuracy": accuracy,
            "test_accuracy": accuracy,
            "learning_rate": 0.1,
            "seconds": 60.0 * epoch,
        }
        for epoch in (1, 2)
    ]
    return line(unit, test_accuracy=accuracy, seconds=120.0, curves=curves, images=[50_000, images])


def attacked(units: Sequence[AttackUnit], psnr: float, floor: float, gain: float, shallow: float = 0.5) -> list[Line]:
    return [line(unit, rows=rows(unit, psnr, floor, gain, shallow)) for unit in units]


def scored(unit: ScoreUnit, score: float) -> Line:
    """Make the scores of a policy, image by image, near `score`."""
    return line(unit, scores=[score + 0.01 * (place % 5 - 2) for place in range(unit.images)])


def results(*lines: Line | Sequence[Line]) -> Results:
    """Put lines and lists of lines together."""
    flat: list[Line] = []
    for entry in lines:
        flat += [entry] if isinstance(entry, Mapping) else list(entry)
    return Results.of(flat)
