"""Structural similarity (Wang et al., 2004)."""

import torch
import torch.nn.functional as F
from torch import Tensor

WINDOW = 11
SIGMA = 1.5
C1 = 0.01**2
C2 = 0.03**2


def ssim(guess: Tensor, target: Tensor) -> Tensor:
    """Score each image of N×C×H×W in [0, 1] against its target: 1 is identical.

    The window is the paper's Gaussian of 11 pixels, only where it lies inside the image; a smaller image gets the
    largest odd window that fits. The score is the mean over channels and places.

    >>> image = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    >>> ssim(image, image)
    tensor([1.], dtype=torch.float64)
    """
    count, channels, height, width = guess.shape
    size = min(WINDOW, height - (height + 1) % 2, width - (width + 1) % 2)
    kernel = gaussian_window(size)

    def blur(images: Tensor) -> Tensor:
        planes = images.reshape(count * channels, 1, *images.shape[-2:])
        return F.conv2d(F.conv2d(planes, kernel.view(1, 1, -1, 1)), kernel.view(1, 1, 1, -1))

    x, y = guess.double().cpu(), target.double().cpu()
    mean_x, mean_y = blur(x), blur(y)
    variance_x = blur(x * x) - mean_x**2
    variance_y = blur(y * y) - mean_y**2
    covariance = blur(x * y) - mean_x * mean_y
    luminance = (2 * mean_x * mean_y + C1) / (mean_x**2 + mean_y**2 + C1)
    structure = (2 * covariance + C2) / (variance_x + variance_y + C2)
    return (luminance * structure).reshape(count, -1).mean(1)


def gaussian_window(size: int) -> Tensor:
    """Make a normalised Gaussian of `size` points, in float64."""
    places = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    weights = torch.exp(-(places**2) / (2 * SIGMA**2))
    return weights / weights.sum()
