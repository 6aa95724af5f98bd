"""How far a candidate's gradient is from the released one, and which way lies nearer.

Gradients are laid out flat: T×P, one row for each of T independent targets, one entry for each of P parameters. Every
distance returns T numbers and their slope with respect to the candidate, T×P, in closed form: no graph is built for it.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from gradveil.defences import TINY, Sizes

Gradients = Mapping[str, Tensor]
Distance = Callable[[Tensor, Tensor, Sizes], tuple[Tensor, Tensor]]
"""Takes the candidate, the released gradient and the sizes of the parameters; returns the distances and their slope."""

LEAST_SHARE = 1e-6


def lay_flat(gradients: Gradients, names: Sizes) -> Tensor:
    """Put tensors with a leading T side by side, in the order of `names`."""
    return torch.cat([gradients[name].flatten(1) for name in names], 1)


def sizes_of(gradients: Gradients) -> dict[str, int]:
    """Count the entries of every tensor, without the leading T."""
    return {name: tensor[0].numel() for name, tensor in gradients.items()}


def norm_of(rows: Tensor) -> Tensor:
    """Return the length of each row, T×1."""
    return (rows.square().sum(1, keepdim=True) + TINY).sqrt()


def cosine(candidate: Tensor, released: Tensor, _: Sizes) -> tuple[Tensor, Tensor]:
    """Compute 1 − cosine of the two whole gradient vectors (Geiping et al., 2020)."""
    ours, theirs = norm_of(candidate), norm_of(released)
    alike = (candidate * released).sum(1, keepdim=True) / (ours * theirs)
    slope = (candidate * (alike / ours.square())).sub_(released / (ours * theirs))
    return 1 - alike[:, 0], slope


def l2(candidate: Tensor, released: Tensor, _: Sizes) -> tuple[Tensor, Tensor]:
    """Sum the squared differences (Zhu et al., 2019)."""
    apart = candidate - released
    return apart.square().sum(1), 2 * apart


def l1(candidate: Tensor, released: Tensor, _: Sizes) -> tuple[Tensor, Tensor]:
    """Sum the absolute differences."""
    apart = candidate - released
    return apart.abs().sum(1), apart.sign()


def layerwise(candidate: Tensor, released: Tensor, sizes: Sizes) -> tuple[Tensor, Tensor]:
    """Compute 1 − cosine, averaged over parameters: each counts the same, however large its gradient."""
    lengths = list(sizes.values())
    parts = zip(torch.split(candidate, lengths, 1), torch.split(released, lengths, 1), strict=True)
    apart, slopes = zip(*(cosine(ours, theirs, sizes) for ours, theirs in parts), strict=True)
    return torch.stack(apart).mean(0), torch.cat(slopes, 1) / len(lengths)


def direction(candidate: Tensor, released: Tensor, _: Sizes) -> tuple[Tensor, Tensor]:
    """Sum the absolute differences between the two directions: what cosine is to the sum of squares."""
    theirs = direction_of(released)
    return (direction_of(candidate) - theirs).abs().sum(1), direction_slope(candidate, theirs)


def direction_of(rows: Tensor) -> Tensor:
    """Scale each row to length 1."""
    return rows / norm_of(rows)


def direction_slope(candidate: Tensor, theirs: Tensor) -> Tensor:
    """Compute the slope of `direction` alone, towards a direction that stays the same from step to step."""
    length = norm_of(candidate)
    ours = candidate / length
    signs = (ours - theirs).sign_()
    along = torch.linalg.vecdot(ours, signs)[:, None]
    return signs.addcmul_(ours, along, value=-1).div_(length)


def levelling(candidate: Tensor, released: Tensor, sizes: Sizes) -> Tensor:
    """Find factors, T×P, that level the parameters: the directions' entries then differ by as much in each of them.

    The gradients of the last layers are by far the largest, and most of what they consist of is the same for every
    image. Measured against a candidate that knows nothing, what counts is how much an entry can tell.
    """
    lengths = list(sizes.values())
    apart = torch.split(direction_of(candidate) - direction_of(released), lengths, 1)
    spread = torch.stack([part.square().mean(1).sqrt() for part in apart], 1)
    # A parameter that hardly differs must not outweigh all others.
    factors = 1 / spread.clamp(min=spread.amax(1, keepdim=True) * LEAST_SHARE + TINY)
    repeats = torch.tensor(lengths, device=released.device)
    return factors.repeat_interleave(repeats, 1, output_size=released.shape[1])


def similarities(candidate: Tensor, released: Tensor, sizes: Sizes) -> dict[str, Tensor]:
    """Compute the cosine between the two gradients, parameter by parameter (Gao et al., 2021, Figure 6)."""
    lengths = list(sizes.values())
    parts = zip(sizes, torch.split(candidate, lengths, 1), torch.split(released, lengths, 1), strict=True)
    return {name: torch.cosine_similarity(ours, theirs, dim=1) for name, ours, theirs in parts}
