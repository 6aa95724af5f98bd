"""How well a transformed image can be guessed by someone who saw no gradient: a score that needs no model."""

from collections.abc import Sequence

from torch import Tensor

from gradveil.metrics import Floor, choose_floor, make_guesses, psnr
from gradveil.rng import generator
from gradveil.scores.draws import function_of, simplify, transform_places
from gradveil.transforms import Policy, PolicySet
from gradveil.types import Batch, to_pixels


class BlindScore:
    """Score policies by the chance floor of their images, negative so that lower is more private.

    Where an attack rebuilds everything, what it gains over chance is what chance leaves. The guesses are made of one
    half of the `public` images; the other half chooses between them.
    """

    def __init__(self, images: Tensor, labels: Tensor, public: Batch, classes: int, seed: int = 0) -> None:
        self.images, self.labels, self.public = images, labels, public
        self.classes, self.seed = classes, seed

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Give minus the floor, in dB, of the images at `places`, all of them unless given, float64."""
        wanted = list(range(len(self.images)) if places is None else places)
        targets = to_pixels(transform_places(policy, self.images, wanted, self.seed, "privacy draw"))
        return -psnr(self.floor(policy).guess(self.labels[wanted]), targets)

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
