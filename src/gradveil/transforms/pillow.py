"""The definition of each operation: Pillow on one 8-bit image.

Pillow is the reference: the kernels reproduce it on batches, and are tested and timed against these functions.
Every function takes an image of mode L or RGB and the magnitude with its sign.
"""

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from gradveil.errors import DataError

MODES = {1: "L", 3: "RGB"}
GREY = 128


def shear_x(image: Image.Image, magnitude: float) -> Image.Image:
    return shear(image, (1, magnitude, 0, 0, 1, 0))


def shear_y(image: Image.Image, magnitude: float) -> Image.Image:
    return shear(image, (1, 0, 0, magnitude, 1, 0))


def shear(image: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC, fillcolor=black(image))


def translate_x(image: Image.Image, magnitude: float) -> Image.Image:
    return translate(image, (1, 0, magnitude * image.width, 0, 1, 0))


def translate_y(image: Image.Image, magnitude: float) -> Image.Image:
    return translate(image, (1, 0, 0, 0, 1, magnitude * image.height))


def translate(image: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix, fillcolor=black(image))


def black(image: Image.Image) -> tuple[int, ...]:
    return (0,) * len(image.getbands())


def rotate(image: Image.Image, magnitude: float) -> Image.Image:
    """Rotate counter-clockwise by `magnitude` degrees; corners that no pixel reaches are grey."""
    rotated = image.convert("RGBA").rotate(magnitude)
    grey = Image.new("RGBA", rotated.size, (GREY,) * 4)
    return Image.composite(rotated, grey, rotated).convert(image.mode)


def color(image: Image.Image, magnitude: float) -> Image.Image:
    return ImageEnhance.Color(image).enhance(1 + magnitude)


def contrast(image: Image.Image, magnitude: float) -> Image.Image:
    return ImageEnhance.Contrast(image).enhance(1 + magnitude)


def sharpness(image: Image.Image, magnitude: float) -> Image.Image:
    return ImageEnhance.Sharpness(image).enhance(1 + magnitude)


def brightness(image: Image.Image, magnitude: float) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(1 + magnitude)


def posterize(image: Image.Image, magnitude: float) -> Image.Image:
    return ImageOps.posterize(image, round(magnitude))


def solarize(image: Image.Image, magnitude: float) -> Image.Image:
    return ImageOps.solarize(image, magnitude)  # type: ignore[arg-type]  # any number can be compared with


def autocontrast(image: Image.Image, _: float) -> Image.Image:
    return ImageOps.autocontrast(image)


def equalize(image: Image.Image, _: float) -> Image.Image:
    return ImageOps.equalize(image)


def invert(image: Image.Image, _: float) -> Image.Image:
    return ImageOps.invert(image)


OPERATIONS: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "shearX": shear_x,
    "shearY": shear_y,
    "translateX": translate_x,
    "translateY": translate_y,
    "rotate": rotate,
    "color": color,
    "contrast": contrast,
    "sharpness": sharpness,
    "brightness": brightness,
    "posterize": posterize,
    "solarize": solarize,
    "autocontrast": autocontrast,
    "equalize": equalize,
    "invert": invert,
}


def to_tensor(image: Image.Image) -> Tensor:
    """Turn an image of mode L or RGB into uint8 C×H×W."""
    if image.mode not in MODES.values():
        raise DataError(f"an image of mode {image.mode}: only L and RGB are supported; call image.convert('RGB') first")
    pixels = torch.from_numpy(np.array(image))
    return pixels.unsqueeze(0) if pixels.dim() == 2 else pixels.permute(2, 0, 1).contiguous()


def to_image(pixels: Tensor) -> Image.Image:
    """Turn uint8 C×H×W into an image of mode L or RGB."""
    array = pixels.cpu().permute(1, 2, 0).contiguous().numpy()
    return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)
