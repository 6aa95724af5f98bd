"""Kernels that blend an image with a plainer version of itself, in single precision as Pillow does.

All take uint8 images N×C×H×W and one float64 magnitude for each image, and equal Pillow to the bit: multiplication
and addition are separate on purpose, a fused one rounds differently.
"""

import torch
from torch import Tensor

from gradveil.transforms.point import per_image, to_bytes

# Pillow's weights of red, green and blue: sixteen-bit fractions, so that single precision adds them up exactly.
RED, GREEN, BLUE = 19595 / 2**16, 38470 / 2**16, 7471 / 2**16


def blend(plain: Tensor, images: Tensor, factors: Tensor) -> Tensor:
    """Compute plain + factor · (images − plain), in place on `images`."""
    return to_bytes(images.sub_(plain).mul_(factors).add_(plain))


def to_grey(images: Tensor) -> Tensor:
    """Compute the luminance of float RGB images, values 0…255, N×1×H×W."""
    grey = images[:, 0] * RED
    return grey.add_(images[:, 1], alpha=GREEN).add_(images[:, 2], alpha=BLUE).add_(0.5).floor_().unsqueeze(1)


def color(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Blend with the grey version; a grey image stays as it is."""
    if images.shape[1] == 1:
        return images.clone()
    pixels = images.float()
    return blend(to_grey(pixels), pixels, per_image(1 + magnitudes).float())


def contrast(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Blend with the mean grey."""
    pixels = images.float()
    grey = pixels if images.shape[1] == 1 else to_grey(pixels)
    count = grey[0].numel()
    exact = torch.float32 if count * 255 < 2**24 else torch.float64
    total = grey.flatten(1).sum(1, dtype=exact).long()
    mean = (2 * total + count) // (2 * count)
    return blend(per_image(mean.float()), pixels, per_image(1 + magnitudes).float())


def sharpness(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Blend with the image smoothed by a 3×3 kernel; the border stays as it is."""
    width = images.shape[3]
    if min(images.shape[2:]) < 3:
        return images.clone()
    # All channels of an image form one line: neighbours are at fixed distances, and only the border wraps around.
    inner = slice(width + 1, -width - 1)
    pixels = images.flatten(1)
    done = torch.empty_like(images, memory_format=torch.contiguous_format)
    done.flatten(1)[:, inner] = blend(
        smooth(pixels, width), pixels[:, inner].float(), (1 + magnitudes).float()[:, None]
    )
    for edge in (0, -1):
        done[:, :, edge] = images[:, :, edge]
        done[:, :, :, edge] = images[:, :, :, edge]
    return done


def smooth(lines: Tensor, width: int) -> Tensor:
    """Weigh a pixel 5/13 and its eight neighbours 1/13 each, rounded; float, without the first and last width + 1."""
    values = lines.to(torch.int16)
    rows = (values[:, :-2] + values[:, 1:-1]).add_(values[:, 2:])
    total = (rows[:, : -2 * width] + rows[:, width:-width]).add_(rows[:, 2 * width :])
    total.add_(values[:, width + 1 : -width - 1], alpha=4)
    # Thirteenths are never halfway between two whole numbers, so every rounding rule agrees with Pillow.
    return total.float().mul_(1 / 13).round_()
