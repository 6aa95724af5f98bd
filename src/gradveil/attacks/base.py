"""What an attack is: public knowledge and one released update in, rebuilt images out."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from gradveil.errors import SettingsError
from gradveil.rng import global_state_from
from gradveil.types import Reconstruction, Task, Update

Progress = Callable[[int, int], None]
"""Called with the steps done and the steps in all."""
WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where one word of a class name ends and the next begins."""


class Attack(ABC):
    """A way to rebuild images from an update.

    An attack of your own has to define `needs` and `attack_many`. Define `check` as well if there are updates that it
    cannot be used on, and `with_steps` and `with_budget` if it takes steps.
    """

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """Say in plain words what the attacker must know beyond the task and the update; reports print it."""

    @abstractmethod
    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        """Attack independent updates; each draws from its own generator, so the grouping changes no draw."""

    def __call__(self, task: Task, update: Update, generator: torch.Generator) -> Reconstruction:
        """Attack one update."""
        return self.attack_many(task, [update], [generator])[0]

    @property
    def name(self) -> str:
        """The name in reports: the class name in lower case, with hyphens."""
        return WORDS.sub("-", type(self).__name__).lower()

    def check(self, task: Task, updates: Sequence[Update]) -> None:  # noqa: B027
        """Raise KnowledgeError if something is missing that the attack needs; accept everything by default."""

    @property
    def gradients_per_step(self) -> int:
        """How many gradients one step computes; 0 if the attack takes no steps."""
        return 0

    @property
    def gradients(self) -> int:
        """About how many gradients it computes for one image; 0 if it takes no steps."""
        return 0

    @property
    def inverts_policy(self) -> bool:
        """Whether it rebuilds the image as it was before a known policy, not as the model was fed it."""
        return False

    @property
    def weighs_noise(self) -> bool:
        """Whether it makes use of the strength of known noise."""
        return False

    @property
    def public_images(self) -> int:
        """How many public images it can make use of; an audit gives it what the data can spare."""
        return 0

    @property
    def rehearsed_images(self) -> int:
        """How many images of its own it attacks besides, once for each model and arm."""
        return 0

    @property
    def needs_known_defence(self) -> bool:
        """Whether it can be used only if the task names a defence as known."""
        return self.inverts_policy

    def with_steps(self, steps: int) -> "Attack":
        """Return the same attack with this many steps."""
        raise SettingsError(f"attack '{self.name}' takes no steps: leave out the number of steps, {steps}")

    def with_budget(self, gradients: int) -> "Attack":
        """Return the same attack with as many steps as compute about this many gradients for one image."""
        raise SettingsError(f"attack '{self.name}' takes no steps: leave out the budget of {gradients} gradients")


@contextmanager
def layers_draw_like(generator: torch.Generator) -> Iterator[None]:
    """Let layers that draw, draw from a copy of `generator`; the draws of the attack stay what they are."""
    copied = torch.Generator(generator.device)
    copied.set_state(generator.get_state())
    with global_state_from(copied):
        yield


def make_failure(task: Task, update: Update, reason: str) -> Reconstruction:
    """Make the result of an attack that could rebuild nothing: images of the mean colour, and the reason."""
    any_tensor = next(iter(update.tensors.values()))
    colour = any_tensor.new_tensor(task.mean).float().clamp(0, 1).view(-1, 1, 1)
    no_labels = torch.zeros(update.images, dtype=torch.int64, device=update.device)
    return Reconstruction(
        colour.expand(update.images, *task.shape).clone(),
        no_labels if update.labels is None else update.labels,
        math.inf,
        "failed",
        reason=reason,
    )
