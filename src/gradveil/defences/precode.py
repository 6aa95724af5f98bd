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
    used: ClassVar[str] = "which gradients depend on the client's own draw: they are left out"
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

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:
        """Leave out the gradients of the bottleneck and of what comes after it, unless there are no others.

        They are of the client's own draw, and mislead whoever cannot repeat it (Scheliga et al., arXiv:2208.04767).
        """
        prefix = find_bottleneck(released.model)
        drawn = [prefix is not None and name.startswith(prefix) for name in released.sizes]
        if all(drawn) or not any(drawn):
            return known
        counts = torch.tensor(list(released.sizes.values()))
        hidden = torch.tensor(drawn).repeat_interleave(counts).to(released.tensor.device)
        return known.hide(hidden.expand_as(released.tensor))


class Bottleneck(nn.Module):
    """Encode features as means and deviations, draw hidden variables, decode them to features again."""

    def __init__(self, features: int, width: int, weight: float) -> None:
        super().__init__()
        self.weight = weight
        self.encode = nn.Linear(features, 2 * width)
        self.decode = nn.Linear(width, features)

    def forward(self, features: Tensor) -> Tensor:
        mean, spread = self.encode(features).chunk(2, dim=-1)
        # softplus, shifted so that a spread of 0 stands for a deviation of about 1/4 to begin with.
        deviation = nn.functional.softplus(spread - 1.25)
        if not torch.is_grad_enabled():
            decoded: Tensor = self.decode(mean)
            return decoded
        divergence = 0.5 * (mean.square() + deviation.square() - 2 * deviation.log() - 1).sum(-1).mean()
        drawn = mean + deviation * torch.randn_like(deviation)
        charged: Tensor = Charge.apply(self.decode(drawn), divergence, self.weight)  # type: ignore[no-untyped-call]
        return charged


def find_bottleneck(model: nn.Module) -> str | None:
    """Return what the names of the bottleneck's parameters and of the last layer's begin with; None without one."""
    found = (name for name, module in model.named_modules() if isinstance(module, Bottleneck))
    name = next(found, None)
    return None if name is None else name.removesuffix("0")


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
