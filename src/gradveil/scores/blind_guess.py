"""How well a transformed image can be guessed by someone who saw no gradient: a score that needs no model."""

from collections.abc import Sequence

from torch import Tensor

from gradveil.metrics import Floor, choose_floor, make_guesses, psnr
from gradveil.rng import generator
from gradveil.scores.base import compute_blocks
from gradveil.scores.policy_draws import PRIVACY_STREAM, function_of, simplify, transform_images
from gradveil.transforms import Policy, PolicySet
from gradveil.types import Batch, to_pixels


class BlindGuessScore:
    """Score policies by the chance floor of their images, negative so that lower is more private.

    Where an attack rebuilds everything, what it gains over chance is what chance leaves. The guesses are made of one
    half of the `public` images; the other half chooses between them.
    """

    block = 8

    def __init__(self, images: Batch, public: Batch, classes: int, seed: int = 0) -> None:
        self.images, self.public, self.classes, self.seed = images, public, classes, seed

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Return minus the floor, in dB, of the images at `places`, all of them unless given, float64."""
        floor = self.floor(policy)

        def guess(members: range) -> Tensor:
            targets = transform_images(policy, self.images.images, members, self.seed, PRIVACY_STREAM)
            return -psnr(floor.guess(self.images.labels[list(members)]), to_pixels(targets))

        return compute_blocks(places, len(self.images), self.block, guess)

    def floor(self, policy: Policy | PolicySet) -> Floor:
        """Find the best guess under a policy."""
        fed, half = self.feed(policy), len(self.public) // 2
        guesses = make_guesses([(fed.images[half:], fed.labels[half:])], self.classes, labels_known=True)
        return choose_floor(guesses, fed.images[:half], fed.labels[:half], psnr)

    def feed(self, policy: Policy | PolicySet) -> Batch:
        """Transform the public images, float in [0, 1]."""
        simple = simplify(policy)
        draws = simple.sample(len(self.public), generator(self.seed, "blind", function_of(policy)))
        return Batch(to_pixels(simple.apply(self.public.images, draws)), self.public.labels)
