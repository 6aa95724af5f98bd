"""A brief attack as a score: what a few steps already gain over chance."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gradveil.attacks import FAINT, Descent, GradientMatching, Noise, Priors, Restarts, cosine_decay
from gradveil.client import Client
from gradveil.metrics import psnr
from gradveil.rng import generator
from gradveil.scores.base import ScoreInputs, compute_blocks
from gradveil.scores.blind_guess import BlindGuessScore
from gradveil.scores.policy_draws import PRIVACY_STREAM, transform_images
from gradveil.transforms import Policy, PolicySet
from gradveil.types import Batch, LocalTraining, to_pixels

BLOCK = 4
BRIEF_ATTACK = GradientMatching(
    descent=Descent(schedule=cosine_decay, steps=6),
    priors=Priors(total_variation=1.0, last_variation=0.3, relative=True),
    restarts=Restarts(together=BLOCK),
    start=Noise(FAINT),
)
"""Settings of its own: a recipe that attacks better some day must not change what a score means."""


class BriefAttackScore:
    """Score policies by the advantage, in dB, of a brief attack on what the model is fed; lower is more private.

    The attack may start from the mean of the class as the policy leaves it.
    """

    block = BLOCK

    def __init__(self, inputs: ScoreInputs, attack: GradientMatching = BRIEF_ATTACK) -> None:
        self.inputs, self.attack = inputs, replace(attack, restarts=replace(attack.restarts, together=BLOCK))
        self.blind = BlindGuessScore(inputs.images, inputs.public, inputs.task.classes, inputs.seed)

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Return the advantage on the images at `places`, all of them unless given, float64."""
        inputs, floor, public = self.inputs, self.blind.floor(policy), self.blind.feed(policy)

        def attack(members: range) -> Tensor:
            labels = inputs.images.labels[members.start : members.stop]
            transformed = transform_images(policy, inputs.images.images, members, inputs.seed, PRIVACY_STREAM)
            targets = Batch(to_pixels(transformed), labels)
            rebuilt = self.rebuild(targets, members, public)
            return psnr(rebuilt, targets.images) - psnr(floor.guess(labels), targets.images)

        return compute_blocks(places, len(inputs.images), self.block, attack)

    def rebuild(self, targets: Batch, members: range, public: Batch) -> Tensor:
        """Attack the gradient of each of the `targets`; returns the rebuilt images, N×C×H×W."""
        task = self.inputs.task
        client, weights = Client(task.model, LocalTraining(loss=task.loss)), task.model.state_dict()
        updates = [
            client.update(weights, targets.take(slice(place, place + 1)), (), torch.Generator())
            for place in range(len(targets))
        ]
        sources = [generator(self.inputs.seed, "brief attack", place) for place in members]
        reconstructions = self.attack.attack_many(replace(task, public=public), updates, sources)
        return torch.cat([one.images for one in reconstructions])
