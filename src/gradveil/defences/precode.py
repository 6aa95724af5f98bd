"""PRECODE: a variational bottleneck before the last layer (Scheliga et al., 2022)."""

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gradveil.defences.base import Hook
from gradveil.defences.grammar import Parametrised
from gradveil.defences.knowledge import KnownRelease, Released
from gradveil.defences.soteria import last_linear
from gradveil.rng import global_state_from
from gradveil.types import Update


@dataclass(frozen=True, repr=False)
class Precode(Parametrised):
    """Draw the features anew, from a distribution that the model learns, every time a gradient is taken.

    `width` is the number of hidden variables and `weight` the β of their divergence from standard normal ones; the
    defaults are the authors'. Differs from Scheliga et al.: predictions use the mean instead of a draw.
    """

    width: int = 256
    weight: float = 1e-3

    name: ClassVar[str] = "precode"
    hooks: ClassVar[tuple[Hook, ...]] = ("model",)
    used: ClassVar[str] = (
        "the draw, which a gradient of one image shows exactly; where it cannot be read, gradients that depend on it "
        "are left out"
    )
    allowed: ClassVar[str] = "write precode or precode:width=K:weight=B with 1 ≤ K ≤ 4096 and 0 ≤ B ≤ 1"

    def is_allowed(self) -> bool:
        return 1 <= self.width <= 4096 and 0 <= self.weight <= 1

    def model(self, model: nn.Module, generator: torch.Generator) -> nn.Module:
        changed = copy.deepcopy(model)
        name, layer = last_linear(changed)
        with global_state_from(generator), layer.weight.device:
            bottleneck = Bottleneck(layer.in_features, self.width, self.weight)
        if not name:
            return nn.Sequential(bottleneck, layer)
        changed.set_submodule(name, nn.Sequential(bottleneck, layer))
        return changed

    def known_model(self, model: nn.Module, update: Update) -> nn.Module:
        """Let the bottleneck repeat the client's draw, if the update shows it."""
        draw = read_draw(model, update)
        if draw is None:
            return model
        repeating = copy.deepcopy(model)
        for layer in find_bottlenecks(repeating).values():
            layer.draw = draw
        return repeating

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:
        """Leave out the gradients of the bottleneck and after it, unless the draw is known or there are no others.

        They are of the client's own draw, and mislead whoever cannot repeat it (Scheliga et al., arXiv:2208.04767).
        """
        unread = [
            name.removesuffix("0") for name, layer in find_bottlenecks(released.model).items() if layer.draw is None
        ]
        drawn = [any(name.startswith(prefix) for prefix in unread) for name in released.sizes]
        if all(drawn) or not any(drawn):
            return known
        counts = torch.tensor(list(released.sizes.values()))
        hidden = torch.tensor(drawn).repeat_interleave(counts).to(released.tensor.device)
        return known.hide(hidden.expand_as(released.tensor))


class Bottleneck(nn.Module):
    """Encode features as means and deviations, draw hidden variables, decode them to features again.

    `draw`, 1×width, is repeated where it is known: that is for attackers.
    """

    draw: Tensor | None = None

    def __init__(self, features: int, width: int, weight: float) -> None:
        super().__init__()
        self.weight = weight
        self.encode = nn.Linear(features, 2 * width)
        self.decode = nn.Linear(width, features)

    def forward(self, features: Tensor) -> Tensor:
        mean, deviation = self.distribution(features)
        if not torch.is_grad_enabled():
            decoded: Tensor = self.decode(mean)
            return decoded
        divergence = 0.5 * (mean.square() + deviation.square() - 2 * deviation.log() - 1).sum(-1).mean()
        drawn = mean + deviation * (torch.randn_like(deviation) if self.draw is None else self.draw)
        charged: Tensor = Charge.apply(self.decode(drawn), divergence, self.weight)  # type: ignore[no-untyped-call]
        return charged

    def distribution(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means and deviations of the hidden variables."""
        mean, spread = self.encode(features).chunk(2, dim=-1)
        # softplus, shifted so that a spread of 0 stands for a deviation of about 1/4 to begin with.
        return mean, nn.functional.softplus(spread - 1.25)


def find_bottlenecks(model: nn.Module) -> dict[str, Bottleneck]:
    """Find the bottlenecks by name: one before the last layer under PRECODE, else none."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Bottleneck)}


RESIDUE = 1e-3
"""A gradient of one image is an outer product up to this share of its norm; one that was changed is not."""


def read_draw(model: nn.Module, update: Update) -> Tensor | None:
    """Read what the bottleneck drew, 1×width, off the gradient of one image; None if that cannot be done.

    What enters a linear layer stands in the gradients of its weight and bias. So the features that were encoded and the
    hidden variables that were decoded are both known; between them lies the draw. (Balunović et al., 2022, break
    PRECODE by reading the hidden variables too.)
    """
    found = find_bottlenecks(model)
    if len(found) != 1 or update.images > 1 or update.local.takes_steps:
        return None
    ((name, layer),) = found.items()
    features, hidden = (read_input(update, f"{name}.{part}") for part in ("encode", "decode"))
    if features is None or hidden is None:
        return None
    with torch.no_grad():
        mean, deviation = layer.distribution(features)
    return (hidden - mean) / deviation


def read_input(update: Update, layer: str) -> Tensor | None:
    """Read what entered a linear layer, 1×inputs; None if its gradient is not that of one untouched image."""
    weight, bias = (update.tensors.get(f"{layer}.{part}") for part in ("weight", "bias"))
    if weight is None or bias is None or not bias.any():
        return None
    entered = bias @ weight / bias.square().sum()
    off = (weight - torch.outer(bias, entered)).norm()
    return entered[None] if float(off) <= RESIDUE * float(weight.norm()) else None


class Charge(torch.autograd.Function):
    """Pass `values` on unchanged, and add `weight`·`penalty` to whatever loss is taken of them.

    So the divergence is trained without the loss having to know of it; it is the loss of a mean over images.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(values: Tensor, penalty: Tensor, weight: float) -> Tensor:  # noqa: ARG004
        return values.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:  # noqa: ARG004
        ctx.weight = inputs[2]
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def jvp(ctx: Any, values: Tensor, penalty: Tensor, weight: None) -> Tensor:  # noqa: ARG004
        return values.clone()

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, Tensor, None]:
        (penalty,) = ctx.saved_tensors
        return slopes, torch.full_like(penalty, ctx.weight), None
