"""Begin a search for images at the picture that was learnt."""

from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor

from gradveil.attacks.learned import Learned
from gradveil.attacks.ranking import transformed_of
from gradveil.attacks.starts import Given, PublicStart, Start
from gradveil.rng import generator
from gradveil.types import Task, Update


@final
@dataclass(frozen=True)
class LearnedStart(PublicStart):
    """Begin near what `Learned` makes of the update: its picture of x or, if `fed`, of what the model was fed."""

    attack: Learned = field(default_factory=Learned)
    fed: bool = False

    @property
    def public_images(self) -> int:
        return self.attack.public_images

    def for_update(self, task: Task, update: Update) -> Start:
        learnt = self.attack(task, update, generator(self.attack.seed, "learned start"))
        return Given(transformed_of(learnt) if self.fed else learnt.images)

    def draw(self, task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
        raise NotImplementedError("a learned start is one of an update: ask for_update first")
