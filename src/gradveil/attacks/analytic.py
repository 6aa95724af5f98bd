"""Exact recovery of what entered a fully-connected layer, from the gradients of its weights and bias.

With z = W·x + b, the gradient of W is δ⊗x and that of b is δ, summed over the images of a batch: every row of the first
divided by the entry of the second is x where only one image contributes to that row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from gradveil.attacks.base import Attack, Progress, make_failure
from gradveil.attacks.labels import check_labels, find_labels
from gradveil.attacks.ranking import Comparison
from gradveil.attacks.singly import as_one_gradient, attack_singly, conclude, require_tensors
from gradveil.errors import KnowledgeError
from gradveil.types import Reconstruction, Task, Update

NEGLIGIBLE = 1e-7
SAME = 1e-2
"""Two rows speak of the same image if they differ by less than this, in pixels' root mean square."""


@final
@dataclass(frozen=True)
class Analytic(Attack):
    """Read images off the gradient of a network whose first layer is fully connected.

    One image is exact. Of a batch, the images are found that some rows of the layer see alone; the others stay grey.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        return ("the model", "the number of images", "a gradient of one step", "a fully-connected first layer")

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        layer = first_linear(task)
        for update in updates:
            require_tensors(as_one_gradient(update), layer.tensors)
            check_labels(task, update)

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        self.check(task, updates)
        layer, comparison = first_linear(task), Comparison(task)
        return attack_singly(
            [as_one_gradient(update) for update in updates],
            generators,
            lambda update, _: read_images(comparison, update, layer),
            progress,
        )


@dataclass(frozen=True)
class FirstLinear:
    """The name of a linear layer that is fed pixels, and whether they come normalised."""

    name: str
    normalised: bool

    @property
    def tensors(self) -> tuple[str, str]:
        """The names of its weight and its bias."""
        return f"{self.name}.weight", f"{self.name}.bias"


def first_linear(task: Task) -> FirstLinear:
    """Find the first linear layer and make sure, with a probe, that nothing but pixels enters it."""
    names = linear_layers(task)
    if names:
        device = next(task.model.parameters()).device
        probe = torch.rand(1, *task.shape, generator=torch.Generator().manual_seed(0)).to(device)
        mean, std = (probe.new_tensor(values).view(-1, 1, 1) for values in (task.mean, task.std))
        entering = input_of(task.model, names[0], probe)
        for normalised, expected in ((True, (probe - mean) / std), (False, probe)):
            if entering.shape == (1, expected.numel()) and torch.allclose(entering, expected.flatten(1), atol=1e-5):
                return FirstLinear(names[0], normalised)
    raise KnowledgeError("the model's first layer is not fully connected: images cannot be read off its gradient")


def input_of(model: nn.Module, name: str, images: Tensor) -> Tensor:
    """Run the model and return what enters the layer called `name`."""
    seen: list[Tensor] = []
    layer = dict(model.named_modules())[name]
    handle = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    try:
        with torch.no_grad():
            model(images)
    finally:
        handle.remove()
    return seen[0]


def read_inputs(update: Update, layer: str) -> Tensor:
    """Read what entered a linear layer with a bias: one candidate for each row that any image contributed to.

    For a single image all rows agree, and one candidate is returned: the least-squares one. It works layer by layer, so
    also for the features that enter the last layer, and all along a stack of fully-connected layers.
    """
    weight, bias = update.tensors[f"{layer}.weight"].double(), update.tensors[f"{layer}.bias"].double()
    if update.images == 1:
        power = bias.square().sum()
        if float(power) == 0:
            raise KnowledgeError(f"the bias gradient of '{layer}' is zero: nothing can be read off it")
        return (bias @ weight / power)[None]
    used = bias.abs() > NEGLIGIBLE * bias.abs().max()
    return weight[used] / bias[used, None]


def linear_layers(task: Task) -> list[str]:
    """Name the linear layers that have a bias, in order: `read_inputs` can read what entered each of them."""
    return [
        name for name, layer in task.model.named_modules() if isinstance(layer, nn.Linear) and layer.bias is not None
    ]


def read_images(comparison: Comparison, update: Update, layer: FirstLinear) -> Reconstruction:
    """Turn the candidates of the first layer into as many images as were fed."""
    task = comparison.task
    try:
        pixels = read_inputs(update, layer.name).view(-1, *task.shape)
    except KnowledgeError as error:
        return make_failure(task, update, str(error))
    if layer.normalised:
        mean, std = (pixels.new_tensor(values).view(-1, 1, 1) for values in (task.mean, task.std))
        pixels = pixels * std + mean
    if update.images > 1:
        pixels = separate(pixels, update.images, pixels.new_tensor(task.mean))
    images = pixels.float().clamp(0, 1)
    return conclude(comparison, update, images, find_labels(task, update))


def separate(candidates: Tensor, images: int, colour: Tensor) -> Tensor:
    """Pick the images that single rows show: valid pixels, and the more rows agree the better; the rest stays grey.

    A row that mixes images is a weighted sum of them with weights of either sign, so it rarely stays within [0, 1].
    """
    slack = 1e-3
    valid = candidates[((candidates > -slack) & (candidates < 1 + slack)).flatten(1).all(1)]
    flat = valid.flatten(1)
    chosen: list[Tensor] = []
    alike = torch.cdist(flat, flat) / math.sqrt(max(1, flat.shape[1])) < SAME
    votes = alike.sum(1)
    while len(chosen) < images and bool((votes > 0).any()):
        leader = int(votes.argmax())
        chosen.append(flat[alike[leader]].median(0).values.view(candidates.shape[1:]))
        votes = votes.masked_fill(alike[leader], 0)
    grey = colour.view(-1, 1, 1).expand(candidates.shape[1:])
    return torch.stack(chosen + [grey] * (images - len(chosen)))
