"""A person's own model: `package.module:name`, a function that makes it or the class of its module."""

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gradveil.errors import SettingsError

Shape = tuple[int, int, int]
Factory = Callable[[Shape, int, Sequence[float], Sequence[float]], nn.Module]
SIGNATURE = "(shape, classes, mean, std), or no arguments"


def import_factory(name: str) -> Factory:
    """Import what `package.module:name` names, from the current folder too, and adapt it to the four arguments."""
    module, _, attribute = name.partition(":")
    search_current_folder()
    try:
        target = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # importing runs a person's own code, which can raise anything
        raise SettingsError(
            f"model '{name}' cannot be imported: {error}; write package.module:function for a module in the current "
            "folder or on Python's path"
        ) from error
    if not callable(target):
        raise SettingsError(
            f"model '{name}' is {type(target).__name__}: it must be a function or a class that takes {SIGNATURE}"
        )
    return adapt(name, target)


def search_current_folder() -> None:
    """Put the current folder first on Python's path, as `python -m` does; worker processes inherit the path."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)


def adapt(name: str, target: Callable[..., Any]) -> Factory:
    """Pass the four arguments to a factory that takes them, and none to one that needs none and knows no `shape`."""
    signature = inspect.signature(target)
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
        except Exception as error:  # as above: the code is a person's own
            raise SettingsError(f"model '{name}' cannot be built for images of shape {shape}: {error}") from error
        return model

    return make


def check_output(model: object, name: str, shape: Shape, classes: int) -> None:
    """Refuse a person's own model if it is no classifier for these images."""
    if not isinstance(model, nn.Module):
        raise SettingsError(f"model '{name}' is {type(model).__name__}: it must be a torch.nn.Module")
    wanted = (2, classes)
    try:
        with torch.inference_mode():
            got = tuple(model.eval()(torch.zeros(2, *shape)).shape)
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise SettingsError(f"model '{name}' fails on images of shape {shape}: {error}") from error
    finally:
        model.train()
    if got != wanted:
        raise SettingsError(f"model '{name}' turns two images into {got}: it must return logits of shape {wanted}")
