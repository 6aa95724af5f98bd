"""How likely an update and an image are, for attackers who know how strong the noise in the update is."""

from torch import Tensor

from gradveil.attacks.distances import norm_of

TYPICAL_VARIATION = 0.43
"""The mean total variation of normalised images: 0.44 in Fashion-MNIST, 0.42 in CIFAR-100 (1,000 images each)."""


def update_surprise(distances: Tensor, released: Tensor, deviation: float) -> Tensor:
    """Return −log p(released | gradient), T, up to a constant, for updates that lie 1 − cosine `distances` away.

    Under normal noise that is ‖released − gradient‖² / 2σ², with the gradient at the length that suits it best.
    """
    noise = (norm_of(released)[:, 0] / deviation).square() / 2
    return noise * (1 - (1 - distances).clamp(min=0).square())


def image_surprise(variations: Tensor, pixels: int) -> Tensor:
    """Return −log p(image), T, up to a constant, for images of so many values and of these mean total variations.

    Differences between neighbours are taken to be Laplace distributed; there are two for each value, which is free to
    vary in one way only, so each counts half.
    """
    return variations * (pixels / TYPICAL_VARIATION)
