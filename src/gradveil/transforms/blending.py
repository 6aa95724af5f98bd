"""Kernels that blend an image with a plainer version of itself, in single precision as Pillow does.

All take uint8 images N×C×H×W and one float64 magnitude for each image, and equal Pillow to the bit: multiplication
and addition are separate on purpose, a fused one rounds differently.
"""

import torch
from torch import Tensor

from gradveil.transforms.point import per_image, to_bytes

# Pillow's weights of red, green and blue: sixteen-bit fractions, so that single precision adds them up exactly.
RED, GREEN, BLUE = 19595 / 2**16, 38470 / 2**16, 7471 / 2**16


def blend(plain: Tensor, images: Tensor, magnitudes: Tensor) -> Tensor:
    """Give plain + (1 + magnitude) · (images − plain); works in place on `images`."""
    return to_bytes(images.sub_(plain).mul_(per_image((1 + magnitudes).float())).add_(plain))


def to_grey(images: Tensor) -> Tensor:
    """Give the luminance of float RGB images, values 0…255, N×1×H×W."""
    grey = images[:, 0] * RED
    return grey.add_(images[:, 1], alpha=GREEN).add_(images[:, 2], alpha=BLUE).add_(0.5).floor_().unsqueeze(1)


def color(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Blend with the grey version; a grey image stays as it is."""
    if images.shape[1] == 1:
        return images.clone()
    pixels = images.float()
    return blend(to_grey(pixels), pixels, magnitudes)


def contrast(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Blend with the mean grey."""
    pixels = images.float()
    grey = pixels if images.shape[1] == 1 else to_grey(pixels)
    total = grey.flatten(1).sum(1, dtype=torch.float64).long()
    count = grey[0].numel()
    mean = (2 * total + count) // (2 * count)
    return blend(per_image(mean.float()), pixels, magnitudes)


def sharpness(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Blend with the image smoothed by a 3×3 kernel; the border stays as it is."""
    if min(images.shape[2:]) < 3:
        return images.clone()
    inner = images[:, :, 1:-1, 1:-1]
    done = images.clone()
    done[:, :, 1:-1, 1:-1] = blend(smooth(images), inner.float(), magnitudes)
    return done


def smooth(images: Tensor) -> Tensor:
    """Weigh a pixel 5/13 and its eight neighbours 1/13 each, rounded; float N×C×(H−2)×(W−2)."""
    values = images.to(torch.int16)
    columns = values[..., :-2] + values[..., 1:-1] + values[..., 2:]
    total = columns[..., :-2, :] + columns[..., 1:-1, :] + columns[..., 2:, :] + 4 * values[..., 1:-1, 1:-1]
    # Thirteenths are never halfway between two whole numbers, so any way of rounding gives Pillow's result.
    return total.float().mul_(1 / 13).round_()
