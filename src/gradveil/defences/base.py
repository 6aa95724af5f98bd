"""What a defence is: declared hooks around the computation of an update, and what an attacker can know of them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from gradveil.defences.knowledge import KnownRelease, Released
from gradveil.gradients import Tensors, gradient
from gradveil.losses import Loss
from gradveil.models import ModelSpec
from gradveil.rng import generator as named_generator
from gradveil.rng import global_state_from
from gradveil.transforms import PolicySet
from gradveil.types import Batch, Update

Hook = Literal["model", "batch", "compute", "release"]
"""A place where a defence can act."""
HOOKS: tuple[Hook, ...] = ("model", "batch", "compute", "release")
"""All hooks, in the order in which a client comes to them."""
NOTHING_YET = "nothing yet"
"""What reports print where no attack uses that it knows a defence."""
Compute = Callable[[nn.Module, Loss, Batch, torch.Generator], Tensors]
"""A way to turn a batch into one gradient."""


class Defence(ABC):
    """Something a client does to keep its images to itself.

    A class declares in `hooks` which of the four methods of that name it overrides. Most defences need `model`,
    `batch` or `release` only; `compute` is for those that must see the gradients or the features of single images.
    A defence that mixes images declares with how many others it mixes each (`companions`); one whose guarantee rests
    on it declares that every step draws each image independently (`poisson`); one whose pictures are not `smooth`, as
    natural images are, declares that, and so does one that releases tensors of the true norms in drawn directions
    (`hides_directions`).

    `used` says what an attacker who knows the defence makes use of. It goes with `known_policies`, `known_release`,
    `known_views`, `known_model` or `deviation`, which serve the attacker; reports print it.
    """

    hooks: ClassVar[tuple[Hook, ...]] = ()
    companions: ClassVar[int] = 0
    poisson: ClassVar[bool] = False
    hides_directions: ClassVar[bool] = False
    smooth: ClassVar[bool] = True
    used: ClassVar[str] = NOTHING_YET

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        overridden = tuple(hook for hook in HOOKS if getattr(cls, hook) is not getattr(Defence, hook))
        if set(overridden) != set(cls.hooks):
            raise TypeError(
                f"{cls.__name__} overrides {overridden} and declares {cls.hooks}: set hooks = {overridden} in the class"
            )

    @abstractmethod
    def __str__(self) -> str:
        """Write the defence as an arm would name it, settings included."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def model(self, model: nn.Module, generator: torch.Generator) -> nn.Module:  # noqa: ARG002
        """Return the model as it has to be before anyone trains it; the one given is left as it is."""
        return model

    def batch(self, batch: Batch, generator: torch.Generator) -> Batch:  # noqa: ARG002
        """Change the images before the gradient is computed."""
        return batch

    def compute(self, inner: Compute) -> Compute:
        """Change how the gradient of a batch is computed."""
        return inner

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        """Change the update before it leaves the client."""
        return update

    def known_policies(self) -> PolicySet | None:
        """Return the policies that images are known to have gone through."""
        return None

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:  # noqa: ARG002
        """Add what is known of the release of these updates to what is known of it already."""
        return known

    def known_views(self, pixels: Tensor) -> list[Tensor]:
        """Return all pictures, each like `pixels`, …×B×C×H×W, that the model is fed in place of these images."""
        return [pixels]

    def known_model(self, model: nn.Module, update: Update) -> nn.Module:  # noqa: ARG002
        """Return the model with what this update shows of the client's own draws; the one given is left as it is."""
        return model

    def deviation(self, images: int) -> float:  # noqa: ARG002
        """Return the standard deviation of the noise it adds to every entry of an update of so many images."""
        return 0.0


def build_defended(spec: ModelSpec, defences: Sequence[Defence], seed: int) -> nn.Module:
    """Build a model as the defences have it, with its first weights."""
    plain = spec.build(named_generator(seed, "model"))
    return defend_model(defences, plain, named_generator(seed, "model", "defences"))


def has_hook(defences: Sequence[Defence], *hooks: Hook) -> bool:
    """Tell whether any of the defences has one of these hooks."""
    return any(hook in defence.hooks for defence in defences for hook in hooks)


def defend_model(defences: Sequence[Defence], model: nn.Module, generator: torch.Generator) -> nn.Module:
    """Apply the model hooks in order."""
    for defence in defences:
        model = defence.model(model, generator)
    return model


def defend_batch(defences: Sequence[Defence], batch: Batch, generator: torch.Generator) -> Batch:
    """Apply the batch hooks in order."""
    for defence in defences:
        batch = defence.batch(batch, generator)
    return batch


def defend_release(defences: Sequence[Defence], update: Update, generator: torch.Generator) -> Update:
    """Apply the release hooks in order."""
    for defence in defences:
        update = defence.release(update, generator)
    return update


def compute_plainly(model: nn.Module, loss: Loss, batch: Batch, generator: torch.Generator) -> Tensors:
    """Take the gradient of the batch; layers that draw, draw from `generator`."""
    with global_state_from(generator):
        tensors = gradient(model, loss, batch.pixels(), batch.labels)
    return {name: tensor.detach() for name, tensor in tensors.items()}


def compute_defended(defences: Sequence[Defence]) -> Compute:
    """Wrap the plain computation in the compute hooks, the first defence innermost."""
    compute: Compute = compute_plainly
    for defence in defences:
        compute = defence.compute(compute)
    return compute


def known_policies(defences: Sequence[Defence]) -> PolicySet | None:
    """Return the policies of the first known defence that has any."""
    return next((found for defence in defences if (found := defence.known_policies()) is not None), None)


def known_views(defences: Sequence[Defence]) -> Callable[[Tensor], list[Tensor]] | None:
    """Return what turns pictures, …×B×C×H×W, into all that the model is known to be fed; None if they are all."""
    own = [defence.known_views for defence in defences if type(defence).known_views is not Defence.known_views]
    if not own:
        return None

    def views(pixels: Tensor) -> list[Tensor]:
        found = [pixels]
        for more in reversed(own):
            found = [view for picture in found for view in more(picture)]
        return found

    return views


def known_smooth(defences: Sequence[Defence]) -> bool:
    """Tell whether what the model is fed still looks like an image; if not, a smooth candidate is a wrong one."""
    return all(defence.smooth for defence in defences)


def known_model(defences: Sequence[Defence], model: nn.Module, update: Update) -> nn.Module:
    """Return the model with what this update shows of the draws of the client's own layers."""
    for defence in defences:
        model = defence.known_model(model, update)
    return model


def shows_draws(defences: Sequence[Defence]) -> bool:
    """Tell whether updates show draws of layers: each then needs a model of its own."""
    return any(type(defence).known_model is not Defence.known_model for defence in defences)


def known_release(defences: Sequence[Defence], released: Released, participants: int = 1) -> KnownRelease:
    """Put together what is known of how these updates were released."""
    known = KnownRelease(deviation=known_deviation(defences, released.images, participants))
    for defence in defences:
        known = defence.known_release(known, released)
    return known


def known_deviation(defences: Sequence[Defence], images: int, participants: int = 1) -> float:
    """Return the standard deviation of all the noise in an update of so many images; 0 if there is none to speak of.

    Noise that was clipped, rounded or partly zeroed afterwards is no longer of the deviation that it had; whatever is
    released was computed before. In the mean of several participants' updates each has its own noise.
    """
    variance = 0.0
    for defence in sorted(defences, key=lambda one: "compute" not in one.hooks):
        own = defence.deviation(images // participants)
        if own == 0 and "release" in defence.hooks:
            variance = 0.0
        variance += own**2
    return math.sqrt(variance / participants)
