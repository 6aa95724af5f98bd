"""How much the gradient turns when the transformed image is changed a little: does it tell images apart?"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from gradveil.gradients import choose_gradients
from gradveil.losses import CrossEntropy, Loss
from gradveil.rng import generator
from gradveil.scores.base import block_size, compute_blocks
from gradveil.scores.policy_draws import PRIVACY_STREAM, transform_images
from gradveil.scores.similarity import compare, multiply
from gradveil.transforms import Policy, PolicySet
from gradveil.types import to_pixels

RADIUS = 0.05
PROBES = 3
SMALLEST = 1e-9


class SensitivityScore:
    """Score policies by log10(1 − GradSim) between T(x) and T(x) with noise of standard deviation `radius`.

    Lower is more private: a gradient that hardly turns does not tell T(x) from its neighbours. The mean is over
    `probes` draws of the noise, the same for every policy. `loss` is that of the training that the weights come from.
    """

    def __init__(
        self,
        model: nn.Module,
        images: Tensor,
        labels: Tensor,
        radius: float = RADIUS,
        probes: int = PROBES,
        loss: Loss | None = None,
        seed: int = 0,
    ) -> None:
        first = next(model.parameters())
        self.images, self.labels, self.seed = images.to(first.device), labels.to(first.device), seed
        sources = [generator(seed, "sensitivity", place) for place in range(len(images))]
        shape = (probes, *images.shape[1:])
        self.noise = radius * torch.stack([torch.randn(shape, generator=source) for source in sources]).to(first)
        self.gradients = choose_gradients(model, loss or CrossEntropy(), to_pixels(self.images), self.labels)
        self.block = block_size(probes + 1)

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Return the score of the images at `places`, all of them unless given, float64."""
        return compute_blocks(places, len(self.images), self.block, partial(self.score_block, policy))

    def score_block(self, policy: Policy | PolicySet, members: range) -> Tensor:
        """Score one block of neighbouring images."""
        chosen = slice(members.start, members.stop)
        targets = to_pixels(transform_images(policy, self.images, members, self.seed, PRIVACY_STREAM)).unsqueeze(1)
        images = torch.cat([targets + self.noise[chosen], targets], 1)
        labels = self.labels[chosen].repeat_interleave(images.shape[1])
        tensors = (g.view(*images.shape[:2], -1) for g in self.gradients.walk(images.flatten(0, 1), labels))
        return (1 - compare(multiply(tensors), "global")[:, :-1]).clamp_min(SMALLEST).log10().mean(1)
