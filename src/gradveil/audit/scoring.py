"""One row for each image, arm, phase and attack: every score beside its chance floor."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from gradveil.audit.floors import Floors
from gradveil.audit.jobs import Attacked
from gradveil.metrics import align, psnr, ssim
from gradveil.types import Status

DECIMALS = 6


@dataclass(frozen=True)
class Row:
    """The figures of one attacked image; an attack that failed or cannot be used has none but a `reason`.

    That is no evidence of privacy. `approximations` names what the attacker's simulation of the client left out.
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
    reason: str = ""
    approximations: tuple[str, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Return the row as it stands in JSON."""
        record = {key: round(v, DECIMALS) if isinstance(v, float) else v for key, v in asdict(self).items()}
        return {**record, "approximations": list(self.approximations)}


def score_cell(arm: str, phase: str, attack: str, attacked: Sequence[Attacked], floors: Floors) -> list[Row]:
    """Score every image of one arm, phase and attack."""
    return [score_image(arm, phase, attack, one, floors) for one in attacked]


def score_image(arm: str, phase: str, attack: str, attacked: Attacked, floors: Floors) -> Row:
    """Score one rebuilt image against T(x), against x, and against x with alignment."""
    truth, result = attacked.truth, attacked.reconstruction
    row = Row(
        arm,
        phase,
        attack,
        truth.image,
        truth.label,
        result.status,
        seconds=attacked.seconds,
        reason=result.reason,
        approximations=result.approximations,
    )
    if result.status != "ok":
        return row
    image = result.images.cpu()
    # An attacker who tells the original from T(x) is judged by each guess where it belongs.
    image_fed = image if result.transformed is None else result.transformed.cpu()
    label, label_fed = torch.tensor([truth.label]), torch.tensor([truth.fed_label])
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
    figures: dict[str, Any] = {
        **{f"psnr_{key}": value for key, value in scores.items()},
        **{f"floor_{key}": value for key, value in chance.items()},
        **{f"advantage_{key}": scores[key] - chance[key] for key in scores},
    }
    return replace(
        row,
        **figures,
        ssim_transformed=float(ssim(image_fed, fed)),
        ssim_original=float(ssim(image, original)),
        ssim_floor_transformed=float(ssim(floors.transformed_ssim.guess(label_fed), fed)),
        ssim_floor_original=float(ssim(floors.original_ssim.guess(label), original)),
        matching_loss=result.matching_loss,
        label_found=int(result.labels[0]) == truth.fed_label,
    )
