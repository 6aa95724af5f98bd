"""The chance floors of every arm, from training images alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.audit.pairing import pair_places
from gradveil.data import DataSet, choose_public
from gradveil.defences import Arm, Defence, defend_batch
from gradveil.metrics import Floor, align, choose_floor, make_guesses, psnr, ssim
from gradveil.rng import generator
from gradveil.types import Batch, to_pixels

DRAWS = 2
CHUNK = 500
LEAST = 2000
PER_CLASS = 100
"""The mean of so many images of a class is within 0.05 dB of the mean of all of them."""
JUDGED = 512
"""How many training images outside the pool choose between the guesses, a fifth of all if there are few."""
PICTURES = "public pictures, paired"


@dataclass(frozen=True, eq=False)
class Chance:
    """What an attacker who saw no update would answer, at one target.

    It is a mean picture for each label, or, where the images of a round are paired afterwards and this gains more,
    public pictures of the right labels, paired in the same way. Where an alignment uncovers pixels, the mean fills
    them.
    """

    kind: str
    means: Tensor
    pictures: Batch | None = None

    def fill(self, labels: Tensor) -> Tensor:
        return self.means[labels]

    def answer(self, targets: Tensor, labels: Tensor, first: int, within_labels: bool) -> Tensor:
        """Answer for all images of a round; `first` decides which public pictures are taken."""
        if self.kind != PICTURES or self.pictures is None:
            return self.means[labels]
        return pair_pictures(self.pictures, targets, labels, first, within_labels)


@dataclass(frozen=True, eq=False)
class Floors:
    """The best answers without an update: at T(x) and at x, by PSNR, SSIM, and PSNR with alignment."""

    transformed: Chance
    transformed_ssim: Chance
    transformed_aligned: Chance
    original: Chance
    original_ssim: Chance
    original_aligned: Chance

    def kinds(self) -> dict[str, str]:
        return {name: chance.kind for name, chance in vars(self).items()}


@dataclass(frozen=True)
class FloorSettings:
    """How floors are made: of `count` training images, for rounds of `round_images` images."""

    count: int | None = None
    labels_known: bool = True
    round_images: int = 1
    seed: int = 0


def make_floors(
    data: DataSet, arms: Sequence[Arm], settings: FloorSettings, progress: Callable[[float], None]
) -> dict[str, Floors]:
    """Choose the floors of every arm; those of the original are common to all arms."""
    pool, judged = divide(data, settings)
    plain = Target(settings, data.classes, defended(pool, (), 1, settings.seed, "raw"), pool, judged)
    original = [plain.choose(score) for score in (psnr, ssim, aligned)]
    floors = {}
    for position, arm in enumerate(arms):
        # The draws that judge are not the draws that the guesses were made of.
        seen = join(defended(judged, arm.defences, 1, settings.seed, f"{arm.name} judged"), judged)
        shown = defended(pool, arm.defences, DRAWS, settings.seed, arm.name)
        pictures = join(defended(pool.take(slice(0, CHUNK)), arm.defences, 1, settings.seed, f"{arm.name} shown"), pool)
        fed = Target(settings, data.classes, shown, pictures, seen)
        floors[arm.name] = Floors(*(fed.choose(score) for score in (psnr, ssim, aligned)), *original)
        progress((position + 1) / len(arms))
    return floors


def divide(data: DataSet, settings: FloorSettings) -> tuple[Batch, Batch]:
    """Choose the images that the guesses are made of, and others that judge the guesses."""
    order = choose_public(data, len(data.train), settings.seed).batch()
    judged = min(JUDGED, max(1, len(order) // 5))
    asked = max(LEAST, PER_CLASS * data.classes) if settings.count is None else settings.count
    return order.take(slice(0, min(asked, max(1, len(order) - judged)))), order.take(slice(len(order) - judged, None))


class Target:
    """One target of the attacks: the guesses for it, and the images that judge them."""

    def __init__(
        self,
        settings: FloorSettings,
        classes: int,
        shown: Iterator[tuple[Tensor, Tensor]],
        pictures: Batch,
        judged: Batch,
    ) -> None:
        self.settings, self.pictures, self.judged = settings, pictures, judged
        self.guesses = make_guesses(shown, classes, settings.labels_known)

    def choose(self, score: Callable[[Tensor, Tensor], Tensor]) -> Chance:
        """Keep the answer with the best mean score over images that it was not made of."""
        images, labels = to_pixels(self.judged.images), self.judged.labels
        best: Floor = choose_floor(self.guesses, images, labels, score)
        size = self.settings.round_images
        if size == 1 or len(labels) < size:
            return Chance(best.kind, best.images)
        paired = Chance(PICTURES, best.images, self.pictures)
        rounds = [slice(start, start + size) for start in range(0, len(labels) - size + 1, size)]
        answers = torch.cat(
            [paired.answer(images[part], labels[part], part.start, self.settings.labels_known) for part in rounds]
        )
        count = len(answers)
        gained = float(score(answers, images[:count]).mean())
        kept = float(score(best.guess(labels[:count]), images[:count]).mean())
        return paired if gained > kept else Chance(best.kind, best.images)


def aligned(guess: Tensor, image: Tensor) -> Tensor:
    """Score with alignment; what a shift uncovers shows the guess."""
    return align(guess, image, guess).psnr


def pair_pictures(pictures: Batch, targets: Tensor, labels: Tensor, first: int, within_labels: bool) -> Tensor:
    """Take a public picture of the right label for each image, and pair them as rebuilt pictures are paired."""
    taken: dict[int, int] = {}
    places = []
    for label in labels.tolist():
        members = (pictures.labels == label).nonzero().flatten() if within_labels else torch.arange(len(pictures))
        key = label if within_labels else -1
        if len(members) == 0:
            members = torch.arange(len(pictures))
        places.append(int(members[(first + taken.get(key, 0)) % len(members)]))
        taken[key] = taken.get(key, 0) + 1
    chosen = pictures.pixels()[places]
    ours = labels if within_labels else torch.zeros_like(labels)
    return chosen[pair_places(chosen, ours, targets, ours)]


def join(parts: Iterator[tuple[Tensor, Tensor]], images: Batch) -> Batch:
    """Put the images that an arm shows together, under the labels that they have."""
    shown = torch.cat([pixels for pixels, _ in parts])
    return Batch(shown, images.labels[: len(shown)])


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


def list_kinds(floors: Mapping[str, Floors]) -> dict[str, dict[str, str]]:
    """Name the floors of every arm, for the report."""
    return {arm: one.kinds() for arm, one in floors.items()}
