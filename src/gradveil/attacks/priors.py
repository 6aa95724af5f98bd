"""What natural images look like, as a penalty."""

from torch import Tensor


def total_variation(images: Tensor) -> Tensor:
    """Mean absolute difference between neighbours down and across, averaged over each leading T of T×B×C×H×W."""
    down = (images[..., 1:, :] - images[..., :-1, :]).abs().flatten(1).mean(1)
    across = (images[..., 1:] - images[..., :-1]).abs().flatten(1).mean(1)
    return down + across
