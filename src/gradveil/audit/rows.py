"""One row for each image, arm, phase and attack: every score beside its chance floor."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from gradveil.audit.cells import Attacked
from gradveil.audit.floors import Floors
from gradveil.metrics import align, psnr, ssim
from gradveil.types import Batch, Status

DECIMALS = 6


@dataclass(frozen=True)
class Row:
    """The figures of one attacked image; a failed attack has none, and is no evidence of privacy.

    PSNR, floors and advantages are in dB. `image` is the position in the test split; `label_found` tells whether the
    label that the attack used is the one that was fed; `seconds` is the image's share of the time its group took.
    """

    arm: str
    phase: str
    attack: str
    image: int
    label: int
    status: Status
    psnr_transformed: float | None = None
    psnr_original: float | None = None
    floor_transformed: float | None = None
    floor_original: float | None = None
    advantage_transformed: float | None = None
    advantage_original: float | None = None
    psnr_aligned: float | None = None
    floor_aligned: float | None = None
    advantage_aligned: float | None = None
    ssim_transformed: float | None = None
    ssim_original: float | None = None
    ssim_floor_transformed: float | None = None
    ssim_floor_original: float | None = None
    matching_loss: float | None = None
    label_found: bool | None = None
    seconds: float = 0.0

    def to_record(self) -> dict[str, Any]:
        """Give the row as it stands in JSON."""
        return {key: round(v, DECIMALS) if isinstance(v, float) else v for key, v in asdict(self).items()}


@dataclass(frozen=True, eq=False)
class Truth:
    """What the audit alone knows of one attacked image: x, T(x) as float 1×C×H×W, and the label.

    `fed_label` is the label that was fed with T(x), where a defence changes it.
    """

    image: int
    label: int
    original: Tensor
    transformed: Tensor
    fed_label: int | None = None

    def batch(self) -> Batch:
        """Give what the model is fed."""
        return Batch(self.transformed, torch.tensor([self.label if self.fed_label is None else self.fed_label]))


def score_cell(
    arm: str,
    phase: str,
    attack: str,
    truths: Sequence[Truth],
    attacked: Sequence[Attacked],
    floors: Floors,
) -> list[Row]:
    """Score every image of one arm, phase and attack."""
    return [
        score_image(arm, phase, attack, truth, result, floors) for truth, result in zip(truths, attacked, strict=True)
    ]


def score_image(arm: str, phase: str, attack: str, truth: Truth, result: Attacked, floors: Floors) -> Row:
    """Score one rebuilt image against T(x), against x, and against x with alignment."""
    found = result.reconstruction
    if found.status != "ok":
        return Row(arm, phase, attack, truth.image, truth.label, found.status, seconds=result.seconds)
    image = found.images.cpu()
    # An attacker who tells the original from what was fed is judged by each guess where it belongs.
    image_fed = image if found.fed is None else found.fed.cpu()
    label, label_fed = torch.tensor([truth.label]), truth.batch().labels
    fed, original = truth.transformed, truth.original
    guess = floors.aligned.guess(label)
    scores = {
        "transformed": float(psnr(image_fed, fed)),
        "original": float(psnr(image, original)),
        "aligned": float(align(image, original, guess).psnr),
    }
    chance = {
        "transformed": float(psnr(floors.transformed.guess(label_fed), fed)),
        "original": float(psnr(floors.original.guess(label), original)),
        "aligned": float(align(guess, original, guess).psnr),
    }
    return Row(
        arm,
        phase,
        attack,
        truth.image,
        truth.label,
        found.status,
        **{f"psnr_{key}": value for key, value in scores.items()},
        **{f"floor_{key}": value for key, value in chance.items()},
        **{f"advantage_{key}": scores[key] - chance[key] for key in scores},
        ssim_transformed=float(ssim(image_fed, fed)),
        ssim_original=float(ssim(image, original)),
        ssim_floor_transformed=float(ssim(floors.transformed_ssim.guess(label_fed), fed)),
        ssim_floor_original=float(ssim(floors.original_ssim.guess(label), original)),
        matching_loss=found.matching_loss,
        label_found=int(found.labels[0]) == int(label_fed),
        seconds=result.seconds,
    )
