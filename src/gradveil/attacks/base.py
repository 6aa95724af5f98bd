"""What an attack is: public knowledge and one released update in, rebuilt images out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gradveil.types import Reconstruction, Task, Update

Progress = Callable[[int, int], None]
"""Called with the steps done and the steps in all."""


@dataclass(frozen=True)
class Attack(ABC):
    """A way to rebuild images from an update.

    `needs` says in plain words what the attacker must know beyond the task and the update; reports print it.
    """

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """Say what the attacker must know."""

    @abstractmethod
    def check(self, task: Task, updates: Sequence[Update]) -> None:
        """Raise KnowledgeError if the attack cannot be used: something it needs is missing."""

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
