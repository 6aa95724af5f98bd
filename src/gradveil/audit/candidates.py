"""Other images of the attacked classes: the null of every score, and the crowd that an image is picked out of."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.audit.floors import Floors, defended
from gradveil.audit.pairing import pair_places
from gradveil.data import DataSet, ImageSet, choose_public
from gradveil.defences import Arm
from gradveil.metrics import AlignedTargets
from gradveil.rng import generator

PER_CLASS = 200


def choose_candidates(data: DataSet, attacked: Sequence[int], labels: Tensor, seed: int) -> ImageSet:
    """Choose up to 200 images of each class in `labels`; none is at the `attacked` places of the test split.

    Test images come first, as the attacked ones are. Images that the attacker has as public ones come last: a rebuilt
    picture may lie nearer to them, which makes the control stricter, never laxer.
    """
    test = torch.ones(len(data.test), dtype=torch.bool)
    test[list(attacked)] = False
    order = torch.randperm(int(test.sum()), generator=generator(seed, "candidates"))
    unused = data.test.take(test.nonzero().flatten()[order])
    training = choose_public(data, len(data.train), seed)
    backwards = training.take(torch.arange(len(training)).flip(0))
    images = torch.cat([unused.images, backwards.images])
    known = torch.cat([unused.labels, backwards.labels])
    places = [(known == label).nonzero().flatten()[:PER_CLASS] for label in torch.unique(labels)]
    chosen = torch.cat(places)
    return ImageSet(images[chosen], known[chosen])


@dataclass(frozen=True, eq=False)
class Crowd:
    """The candidates of one class as targets: T(x) and x, and what chance scores at each."""

    transformed: Tensor
    fed: AlignedTargets
    fed_floor: Tensor
    own: AlignedTargets
    own_floor: Tensor

    def __len__(self) -> int:
        return len(self.transformed)

    def gains(self, fed: Tensor, own: Tensor, places: Tensor) -> Tensor:
        """Score guesses of T(x) and of x against the candidates in `places`: both gains over the mean guess, N×2."""
        at_fed = self.fed.score(fed, places) - self.fed_floor[places]
        return torch.stack([at_fed, self.own.score(own, places) - self.own_floor[places]], 1)


class Candidates:
    """The candidates as an arm would feed them."""

    def __init__(self, pool: ImageSet, arm: Arm, floors: Floors, seed: int) -> None:
        pixels = pool.batch().pixels()
        shown = list(defended(pool.batch(), arm.defences, 1, seed, f"{arm.name} candidates"))
        fed, fed_labels = torch.cat([images for images, _ in shown]), torch.cat([labels for _, labels in shown])
        self.crowds: dict[int, Crowd] = {}
        for label in torch.unique(pool.labels).tolist():
            members = (pool.labels == label).nonzero().flatten()
            labels = (fed_labels[members], pool.labels[members])
            self.crowds[label] = gather_crowd(fed[members], pixels[members], labels, floors)

    def control(self, fed: Tensor, own: Tensor, labels: Tensor, found: Tensor, source: torch.Generator) -> list[Tensor]:
        """Score the pictures rebuilt from a round against other images with the labels of the round.

        That is the wrong-gradient control: for these images the round's update is that of others with the same labels.
        `fed` and `own` are the rebuilt T(x) and x of each true image, `labels` its true label, `found` the label of the
        attack. Other images are paired with rebuilt ones as the true ones were. The result has, for each image, the
        gains at T(x) and at x for each set of other images, N×2.
        """
        if any(int(label) not in self.crowds for label in labels):
            return [torch.zeros(0, 2) for _ in labels]
        sets = self.draw_sets(labels.tolist(), source)
        if len(labels) == 1:
            crowd = self.crowds[int(labels[0])]
            return [crowd.gains(fed, own, sets[:, 0])]
        return self.control_round(fed, own, labels, found, sets)

    def draw_sets(self, labels: Sequence[int], source: torch.Generator) -> Tensor:
        """Draw sets of candidates for the images of a round, sets × images; a set holds no candidate twice."""
        places: dict[int, Tensor] = {}
        for label in sorted(set(labels)):
            order = torch.randperm(len(self.crowds[label]), generator=source)
            each = labels.count(label)
            places[label] = order[: len(order) // each * each].view(-1, each)
        count = min(len(part) for part in places.values())
        taken = dict.fromkeys(places, 0)
        columns = []
        for label in labels:
            columns.append(places[label][:count, taken[label]])
            taken[label] += 1
        return torch.stack(columns, 1)

    def control_round(self, fed: Tensor, own: Tensor, labels: Tensor, found: Tensor, sets: Tensor) -> list[Tensor]:
        paired = []
        for places in sets:
            targets = [self.crowds[int(label)].transformed[place] for label, place in zip(labels, places, strict=True)]
            paired.append(pair_places(fed, found, torch.stack(targets), labels))
        chosen = torch.stack(paired) if paired else torch.zeros(0, len(labels), dtype=torch.int64)
        return [
            self.crowds[int(label)].gains(fed[chosen[:, image]], own[chosen[:, image]], sets[:, image])
            for image, label in enumerate(labels)
        ]


def gather_crowd(fed: Tensor, own: Tensor, labels: tuple[Tensor, Tensor], floors: Floors) -> Crowd:
    """Make the candidates of one class ready to be scored against; `labels` are those of T(x) and of x."""
    fills = [floors.transformed_aligned.fill(labels[0]), floors.original_aligned.fill(labels[1])]
    targets = [AlignedTargets(images, fill) for images, fill in zip((fed, own), fills, strict=True)]
    every = torch.arange(len(own))
    floor = [target.score(fill, every) for target, fill in zip(targets, fills, strict=True)]
    return Crowd(fed, targets[0], floor[0], targets[1], floor[1])


def rebuilt_pair(images: Tensor, transformed: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the guesses of T(x) and of x; an attacker who does not tell them apart has one for both."""
    own = images.cpu()
    return (own if transformed is None else transformed.cpu()), own


def make_candidates(pool: ImageSet, arms: Sequence[Arm], floors: dict[str, Floors], seed: int) -> dict[str, Candidates]:
    """Make the candidates of every arm."""
    return {arm.name: Candidates(pool, arm, floors[arm.name], seed) for arm in arms}
