"""The chance floors of every arm, from training images alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from gradveil.data import DataSet, choose_public
from gradveil.defences import Arm, Defence, defend_batch
from gradveil.metrics import Floor, align, choose_floor, make_guesses, psnr, ssim
from gradveil.rng import generator
from gradveil.types import Batch, to_pixels

DRAWS = 2
CHUNK = 500
JUDGED = 256
"""How many training images choose between the guesses."""


@dataclass(frozen=True, eq=False)
class Floors:
    """The best guesses without a gradient, at the transformed image, at the original, and with alignment."""

    transformed: Floor
    transformed_ssim: Floor
    original: Floor
    original_ssim: Floor
    aligned: Floor


def make_floors(
    data: DataSet, arms: Sequence[Arm], count: int, labels_known: bool, seed: int, progress: Callable[[float], None]
) -> dict[str, Floors]:
    """Choose the floors of every arm from `count` training images; those of the original are common to all arms."""
    images = choose_public(data, count, seed).batch()
    judged = images.take(slice(0, JUDGED))
    raw = make_guesses(defended(images, (), 1, seed, "raw"), data.classes, labels_known)
    plain = to_pixels(judged.images)
    original = choose_floor(raw, plain, judged.labels, psnr)
    original_ssim = choose_floor(raw, plain, judged.labels, ssim)
    aligned = choose_floor(raw, plain, judged.labels, lambda guess, image: align(guess, image, guess).psnr)

    floors = {}
    for position, arm in enumerate(arms):
        fed = make_guesses(defended(images, arm.defences, DRAWS, seed, arm.name), data.classes, labels_known)
        # The draws that judge are not the draws that the guesses were made of.
        target = next(defended(judged, arm.defences, 1, seed, f"{arm.name} judged"))[0]
        floors[arm.name] = Floors(
            choose_floor(fed, target, judged.labels, psnr),
            choose_floor(fed, target, judged.labels, ssim),
            original,
            original_ssim,
            aligned,
        )
        progress((position + 1) / len(arms))
    return floors


def defended(
    images: Batch, defences: Sequence[Defence], draws: int, seed: int, name: str
) -> Iterator[tuple[Tensor, Tensor]]:
    """Show the images as the arm would feed them to the model, several draws of each."""
    for draw in range(draws):
        for start in range(0, len(images), CHUNK):
            part = slice(start, start + CHUNK)
            batch = Batch(images.images[part], images.labels[part])
            fed = defend_batch(defences, batch, generator(seed, "floor", name, draw, start))
            yield fed.pixels(), fed.labels
