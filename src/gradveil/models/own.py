"""A person's own model: `package.module:name`, a function that makes it or the class of its module."""

import inspect
import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from gradveil.errors import SettingsError
from gradveil.own_code import import_named, in_one_line

Shape = tuple[int, int, int]
Factory = Callable[[Shape, int, Sequence[float], Sequence[float]], nn.Module]
"""Makes a model from image shape, number of classes, and the means and deviations of the channels."""
STORED_TYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
}
"""What a checkpoint can hold."""
SIGNATURE = "(shape, classes, mean, std), or no arguments"


def import_factory(name: str) -> Factory:
    """Import what `package.module:name` names, from the current folder too, and adapt it to the four arguments."""
    target = import_named("model", name)
    if not callable(target):
        raise SettingsError(
            f"model '{name}' is {type(target).__name__}: it must be a function or a class that takes {SIGNATURE}"
        )
    return adapt(name, target)


def adapt(name: str, target: Callable[..., Any]) -> Factory:
    """Pass the four arguments to a factory that takes them, and none to one that needs none and knows no `shape`."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"model '{name}' does not say what it takes: it must take {SIGNATURE}") from error
    parameters = signature.parameters.values()
    optional = all(each.default is not each.empty or each.kind is each.VAR_KEYWORD for each in parameters)
    without = optional and "shape" not in signature.parameters
    try:
        signature.bind(*([] if without else [None] * 4))
    except TypeError as error:
        raise SettingsError(f"model '{name}' takes {signature}: it must take {SIGNATURE}") from error

    def make(shape: Shape, classes: int, mean: Sequence[float], std: Sequence[float]) -> nn.Module:
        try:
            model: nn.Module = target() if without else target(shape, classes, mean, std)
        except (Exception, SystemExit) as error:  # as above: the code is a person's own
            raise SettingsError(
                f"model '{name}' cannot be built for images of shape {shape}: {in_one_line(error)}"
            ) from error
        return model

    return make


def check_model(model: object, name: str, shape: Shape, classes: int) -> None:
    """Refuse a person's own model before any work if it cannot be trained, copied or stored, or does not fit."""
    if not isinstance(model, nn.Module):
        raise SettingsError(f"model '{name}' is {type(model).__name__}: it must be a torch.nn.Module")
    check_tensors(model, name)
    try:
        copy = deepcopy(model).eval()
    except Exception as error:
        raise SettingsError(f"model '{name}' cannot be copied, as clients must: {in_one_line(error)}") from error
    check_slopes(copy, name, compute_logits(copy, name, shape, classes))


def check_tensors(model: nn.Module, name: str) -> None:
    """Refuse a model with tensors that have no size yet, that no file can hold, or of which none is trained."""
    for place, tensor in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(tensor):
            raise SettingsError(
                f"model '{name}' has a lazy layer, whose '{place}' has no size yet: give the layer its sizes, or call "
                "the model once in its factory"
            )
        if tensor.dtype not in STORED_TYPES:
            raise SettingsError(
                f"model '{name}' has '{place}' of {tensor.dtype}, which a checkpoint cannot hold: use a real type"
            )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise SettingsError(f"model '{name}' has no parameter that is trained: let at least one require a gradient")


def compute_logits(model: nn.Module, name: str, shape: Shape, classes: int) -> Tensor:
    """Turn two images into logits; refuse a model that fails, changes the images, or returns something else."""
    images = torch.linspace(0, 1, 2 * math.prod(shape)).view(2, *shape)
    before = images.clone()
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            logits = model(images)
    except Exception as error:  # as above
        raise SettingsError(f"model '{name}' fails on images of shape {shape}: {in_one_line(error)}") from error
    if images._version > 0 or not torch.equal(images, before):
        raise SettingsError(
            f"model '{name}' changes its images in place: write images = images - 0.5 instead of images -= 0.5, and no "
            "inplace=True in the first layer"
        )
    got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if not isinstance(logits, Tensor) or got != (2, classes):
        raise SettingsError(
            f"model '{name}' turns two images into {got}: it must return logits of shape {(2, classes)}"
        )
    return logits


def check_slopes(model: nn.Module, name: str, logits: Tensor) -> None:
    """Refuse a model whose logits depend on none of its trained parameters."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    slopes: Sequence[Tensor | None] = [None]
    if logits.requires_grad and logits.is_floating_point():
        try:
            slopes = torch.autograd.grad(logits.sum(), trained, allow_unused=True)
        except RuntimeError as error:
            raise SettingsError(f"model '{name}' has no gradient: {in_one_line(error)}") from error
    if all(slope is None for slope in slopes):
        raise SettingsError(
            f"model '{name}' returns logits that depend on none of its trained parameters: leave out argmax, detach "
            "and no_grad"
        )
