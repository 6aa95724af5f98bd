"""Does the chance floor hold on images that it was not made of, and does it get the pairing that attacks get?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradveil.audit import Chance, Floors, FloorSettings, make_floors
from gradveil.data import DataSet, choose_public
from gradveil.defences import parse_arm
from gradveil.metrics import align, choose_floor, make_guesses, mean_interval, psnr
from gradveil.types import Batch, to_pixels

HELD_OUT = 1024
PIECE = 2000
ROUNDS = (8, 16)
EARLIER_POOL, EARLIER_JUDGED = 2000, 256
"""How floors were made before: class means of so many images, chosen on the first of the same images."""


@dataclass(frozen=True)
class FloorTrial:
    """The floors of one seed, held against test images that had no part in them."""

    data: str
    seed: int


def measure_floors(trial: FloorTrial, data: DataSet) -> dict[str, Any]:
    """Compare floors with the mean image of the training images, and public pictures with the floors."""
    held_out = data.test.take(torch.randperm(len(data.test), generator=torch.Generator().manual_seed(trial.seed)))
    test = Batch(held_out.images[:HELD_OUT], held_out.labels[:HELD_OUT])
    return {"held_out": compare_floors(trial, data, test), "pairing": [pair(trial, data, test, n) for n in ROUNDS]}


def compare_floors(trial: FloorTrial, data: DataSet, test: Batch) -> dict[str, Any]:
    """Return the mean gain in dB of the chosen guess over the mean image, image by image: as before, and now."""
    earlier = choose_public(data, EARLIER_POOL, trial.seed).batch()
    pool = earlier.pixels()
    guesses = make_guesses([(pool, earlier.labels)], data.classes, labels_known=True)
    few = slice(0, EARLIER_JUDGED)
    before = choose_floor(guesses, pool[few], earlier.labels[few], psnr)
    now = floors_of(trial, data, 1).original
    plain = make_guesses(pieces(data), data.classes, labels_known=False)["mean image"]
    targets = test.pixels()

    def gain(answers: Tensor) -> dict[str, Any]:
        return write(psnr(answers[test.labels], targets) - psnr(plain[test.labels], targets))

    return {
        "before": {"kind": before.kind, **gain(before.images)},
        "now": {"kind": now.kind, **gain(now.means)},
    }


def pieces(data: DataSet) -> Iterator[tuple[Tensor, Tensor]]:
    """Read the training images piece by piece: all at once they are large."""
    for start in range(0, len(data.train), PIECE):
        part = slice(start, start + PIECE)
        yield to_pixels(data.train.images[part]), data.train.labels[part]


def pair(trial: FloorTrial, data: DataSet, test: Batch, size: int) -> dict[str, Any]:
    """Let public pictures of the right labels, paired as an attack's are, play the attack on rounds of `size` images.

    The pictures are the back of the public order: the floor has those of its front.
    """
    floors = floors_of(trial, data, size)
    floor = floors.original_aligned
    order = choose_public(data, len(data.train), trial.seed).batch()
    attack = Chance("public pictures, paired", floor.means, order.take(slice(len(order) // 2, None)))
    gains, plain = [], []
    for start in range(0, len(test) // size * size, size):
        part = test.take(slice(start, start + size))
        targets, fill = part.pixels(), floor.fill(part.labels)
        guess = attack.answer(targets, part.labels, start, within_labels=False)
        reached = align(guess, targets, fill).psnr
        answer = floor.answer(targets, part.labels, start, within_labels=False)
        gains.append(reached - align(answer, targets, fill).psnr)
        plain.append(reached - align(fill, targets, fill).psnr)
    return {
        "round": size,
        "floor": floor.kind,
        "advantage": write(torch.cat(gains)),
        "unpaired": write(torch.cat(plain)),
    }


def floors_of(trial: FloorTrial, data: DataSet, size: int) -> Floors:
    """Make the floors of the arm without a defence; in a round of several images the labels are hidden."""
    settings = FloorSettings(labels_known=size == 1, round_images=size, seed=trial.seed)
    return make_floors(data, [parse_arm("none")], settings, lambda _: None)["none"]


def write(gains: Tensor) -> dict[str, Any]:
    found = mean_interval(gains.tolist())
    return {"mean": found.mean, "low": found.low, "high": found.high, "count": found.count}
