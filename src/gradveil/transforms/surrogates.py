"""The operations on float images in [0, 1] without rounding, from which the differentiable view takes its gradients.

All take images N×C×H×W and one float64 magnitude for each image. Posterize and equalize have no surrogate: their
derivative is zero almost everywhere, so the gradient passes straight through them.
"""

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil.transforms import pillow
from gradveil.transforms.blending import BLUE, GREEN, RED
from gradveil.transforms.geometry import by_magnitude, rotation, shearing
from gradveil.transforms.point import per_image


def invert(images: Tensor, _: Tensor) -> Tensor:
    return 1 - images


def solarize(images: Tensor, thresholds: Tensor) -> Tensor:
    return torch.where(images * 255 < per_image(thresholds), images, 1 - images)


def autocontrast(images: Tensor, _: Tensor) -> Tensor:
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    flat = high <= low
    return torch.where(flat, images, (images - low) / torch.where(flat, 1, high - low))


def blend(plain: Tensor, images: Tensor, magnitudes: Tensor) -> Tensor:
    factors = per_image(1 + magnitudes).to(images.dtype)
    return (plain + factors * (images - plain)).clamp(0, 1)


def brightness(images: Tensor, magnitudes: Tensor) -> Tensor:
    return blend(torch.zeros_like(images), images, magnitudes)


def color(images: Tensor, magnitudes: Tensor) -> Tensor:
    return blend(to_grey(images), images, magnitudes)


def contrast(images: Tensor, magnitudes: Tensor) -> Tensor:
    return blend(to_grey(images).mean((1, 2, 3), keepdim=True), images, magnitudes)


def to_grey(images: Tensor) -> Tensor:
    if images.shape[1] == 1:
        return images
    red, green, blue = torch.split(images, 1, dim=1)
    return RED * red + GREEN * green + BLUE * blue


def sharpness(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Smooth all but the border."""
    if min(images.shape[2:]) < 3:
        return images
    inner = images[:, :, 1:-1, 1:-1]
    smooth = (9 * F.avg_pool2d(images, 3, stride=1) + 4 * inner) / 13
    return blend(images + F.pad(smooth - inner, (1, 1, 1, 1)), images, magnitudes)


def rotate(images: Tensor, magnitudes: Tensor) -> Tensor:
    return by_magnitude(images, magnitudes, rotate_by)


def rotate_by(degrees: float, images: Tensor) -> Tensor:
    sources, inside = (table.to(images.device) for table in rotation(images.shape[2], images.shape[3], degrees))
    turned = torch.where(inside > 0, images.flatten(2)[..., sources], pillow.GREY / 255)
    return turned.view_as(images)


def shear_x(images: Tensor, magnitudes: Tensor) -> Tensor:
    return by_magnitude(images, magnitudes, partial(shear, False))


def shear_y(images: Tensor, magnitudes: Tensor) -> Tensor:
    return by_magnitude(images, magnitudes, partial(shear, True))


def shear(vertical: bool, magnitude: float, images: Tensor) -> Tensor:
    plan = shearing(images.shape[2], images.shape[3], magnitude, vertical).to(images.device)
    first, second, third, fourth = plan.taps(images)
    fractions = plan.fractions.to(images.dtype)
    p2, p3, p4 = third - first, 2 * (first - second) + third - fourth, fourth - third + second - first
    done = (second + fractions * (p2 + fractions * (p3 + fractions * p4))).clamp(0, 1)
    return plan.crop(torch.where(plan.inside > 0, done, 0), images.shape)
