"""The kernels by the name of their operation."""

from collections.abc import Callable

from torch import Tensor

from gradveil.transforms import blending, geometry, point

KERNELS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "shearX": geometry.shear_x,
    "shearY": geometry.shear_y,
    "translateX": geometry.translate_x,
    "translateY": geometry.translate_y,
    "rotate": geometry.rotate,
    "color": blending.color,
    "contrast": blending.contrast,
    "sharpness": blending.sharpness,
    "brightness": point.brightness,
    "posterize": point.posterize,
    "solarize": point.solarize,
    "autocontrast": point.autocontrast,
    "equalize": point.equalize,
    "invert": point.invert,
}
