"""How far a candidate's gradient is from the released one.

Both arguments map parameter names to tensors with a leading dimension T of independent targets; the result has shape T.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

Gradients = Mapping[str, Tensor]
Distance = Callable[[Gradients, Gradients], Tensor]


def total(parts: Gradients) -> Tensor:
    """Sum each target's entries over all parameters."""
    return torch.stack([part.flatten(1).sum(1) for part in parts.values()]).sum(0)


def cosine(candidate: Gradients, released: Gradients) -> Tensor:
    """1 − cosine of the two whole gradient vectors (Geiping et al., 2020)."""
    product = total({name: candidate[name] * tensor for name, tensor in released.items()})
    ours = total({name: candidate[name].square() for name in released})
    theirs = total({name: tensor.square() for name, tensor in released.items()})
    # The tiny addend keeps the slope finite where a gradient vanishes.
    return 1 - product / ((ours + 1e-30).sqrt() * (theirs + 1e-30).sqrt())


def squares(candidate: Gradients, released: Gradients) -> Tensor:
    """Sum of squared differences (Zhu et al., 2019)."""
    return total({name: (candidate[name] - tensor).square() for name, tensor in released.items()})


def absolutes(candidate: Gradients, released: Gradients) -> Tensor:
    """Sum of absolute differences."""
    return total({name: (candidate[name] - tensor).abs() for name, tensor in released.items()})


def similarities(candidate: Gradients, released: Gradients) -> Gradients:
    """Cosine between the two gradients, parameter by parameter (Gao et al., 2021, Figure 6)."""
    return {
        name: torch.cosine_similarity(candidate[name].flatten(1), tensor.flatten(1), dim=1)
        for name, tensor in released.items()
    }


def layerwise(candidate: Gradients, released: Gradients) -> Tensor:
    """1 − cosine, averaged over parameters: each counts the same, however large its gradient."""
    return 1 - torch.stack(list(similarities(candidate, released).values())).mean(0)


DISTANCES: dict[str, Distance] = {"cosine": cosine, "layerwise": layerwise, "l2": squares, "l1": absolutes}
