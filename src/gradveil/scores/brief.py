"""A brief attack as a score: what a few steps already gain over chance."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gradveil.attacks import GradientMatching
from gradveil.client import Client
from gradveil.metrics import psnr
from gradveil.rng import generator
from gradveil.scores.blind import BlindScore
from gradveil.scores.draws import transform_places
from gradveil.transforms import Policy, PolicySet
from gradveil.types import Batch, LocalTraining, Task, to_pixels

BLOCK = 4
BRIEF = GradientMatching(
    steps=6, schedule="cosine", start="zeros", total_variation=1.0, last_variation=0.3, relative=True, together=BLOCK
)
"""Settings of its own: a recipe that attacks better some day must not change what a score means."""


class BriefAttackScore:
    """Score policies by the advantage, in dB, of a brief attack on what the model is fed; lower is more private.

    The attack may start from the mean of the class as the policy leaves it. Images are always attacked in the same
    groups of `block` neighbours.
    """

    block = BLOCK

    def __init__(
        self,
        task: Task,
        images: Tensor,
        labels: Tensor,
        blind: BlindScore,
        attack: GradientMatching = BRIEF,
        seed: int = 0,
    ) -> None:
        self.task, self.images, self.labels, self.blind, self.seed = task, images, labels, blind, seed
        self.attack = replace(attack, together=BLOCK)

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Give the advantage on the images at `places`, all of them unless given, float64."""
        wanted = list(range(len(self.images)) if places is None else places)
        floor, public = self.blind.floor(policy), self.blind.feed(policy)
        found: dict[int, float] = {}
        for block in sorted({place // BLOCK for place in wanted}):
            members = range(block * BLOCK, min((block + 1) * BLOCK, len(self.images)))
            labels = self.labels[members.start : members.stop]
            targets = to_pixels(transform_places(policy, self.images, members, self.seed, "privacy draw"))
            gained = psnr(self.rebuild(targets, labels, members, public), targets) - psnr(floor.guess(labels), targets)
            found |= dict(zip(members, gained.tolist(), strict=True))
        return torch.tensor([found[place] for place in wanted], dtype=torch.float64)

    def rebuild(self, targets: Tensor, labels: Tensor, members: range, public: Batch) -> Tensor:
        """Attack the gradients of `targets`, N×C×H×W."""
        batches = [Batch(targets[place : place + 1], labels[place : place + 1]) for place in range(len(targets))]
        client = Client(self.task.model, LocalTraining(loss=self.task.loss))
        weights = self.task.model.state_dict()
        updates = [client.update(weights, batch, (), torch.Generator()) for batch in batches]
        sources = [generator(self.seed, "brief attack", place) for place in members]
        found = self.attack.attack_many(replace(self.task, public=public), updates, sources)
        return torch.cat([one.images for one in found])
