"""How well a transformed image can be guessed by someone who saw no gradient: a score that needs no model."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradveil.metrics import Floor, choose_floor, make_guesses, psnr
from gradveil.rng import generator
from gradveil.scores.draws import function_of, simplify, transform_places
from gradveil.transforms import Policy, PolicySet
from gradveil.types import Batch, to_pixels


class BlindScore:
    """Score policies by the chance floor of their images, negative so that lower is more private.

    Where an attack rebuilds everything, what it gains over chance is what chance leaves. The guesses are made of the
    `public` images, half of which choose between them.
    """

    def __init__(self, images: Tensor, labels: Tensor, public: Batch, classes: int, seed: int = 0) -> None:
        self.images, self.labels, self.public = images, labels, public
        self.classes, self.seed = classes, seed

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Give minus the floor in dB of the images at `places`, all of them unless given, float64."""
        wanted = list(range(len(self.images)) if places is None else places)
        targets = to_pixels(transform_places(policy, self.images, wanted, self.seed, "privacy draw"))
        return -psnr(self.floor(policy).guess(self.labels[wanted]), targets).double()

    def floor(self, policy: Policy | PolicySet) -> Floor:
        """Find the best guess under a policy."""
        simple, half = simplify(policy), len(self.public) // 2
        source = generator(self.seed, "blind", function_of(policy))
        fed = to_pixels(simple(self.public.images, source))
        labels = self.public.labels
        guesses = make_guesses([(fed[half:], labels[half:])], self.classes, labels_known=True)
        return choose_floor(guesses, fed[:half], labels[:half], psnr)


def best_known(floor: Floor, labels: Tensor, targets: Tensor) -> Tensor:
    """Give the PSNR of the guess for each target, float64."""
    return torch.as_tensor(psnr(floor.guess(labels), targets)).double()
