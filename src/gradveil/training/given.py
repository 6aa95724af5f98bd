"""Weights from a file: a checkpoint of ours, a plain `state_dict` of torch, or safetensors without our description."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from gradveil.data import DataSet
from gradveil.defences import Defence
from gradveil.errors import CheckpointError
from gradveil.losses import CrossEntropy, Loss
from gradveil.models import ModelSpec
from gradveil.tensor_files import align
from gradveil.training.checkpoint import (
    Checkpoint,
    Weights,
    check_finite,
    check_shapes,
    expected_shapes,
    load_checkpoint,
    shapes_of,
)
from gradveil.training.phases import GIVEN
from gradveil.training.settings import BRIEF

WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Under these names others keep the weights beside an optimiser's state or an epoch's number."""
SAVE_WEIGHTS = "save the weights with torch.save(model.state_dict(), ...)"
PARALLEL = "module."
"""What torch's DataParallel puts before every name."""


@dataclass(frozen=True, eq=False)
class GivenWeights:
    """Weights that fit the model of `spec` as `defences` changed it; loss and phase as far as they are known."""

    spec: ModelSpec
    weights: Weights
    loss: Loss
    phase: str = GIVEN
    defences: tuple[Defence, ...] = ()

    def checkpoint(self) -> Checkpoint:
        """Return them as a checkpoint, to build the model with."""
        settings = replace(BRIEF, loss=str(self.loss)).to_record()
        return Checkpoint(self.weights, self.spec, {"settings": settings}, self.defences)


def load_given(path: Path, model: str | None, data: DataSet) -> GivenWeights:
    """Load the weights in `path` for images of `data`; a file without our description needs the name of its model.

    Nothing in the file is run: torch's own files are read as tensors only.
    """
    if not path.exists():
        raise CheckpointError(f"{path} cannot be read: there is no such file; name one that holds weights")
    if path.suffix == ".safetensors" and path.with_suffix(".json").exists():
        loaded = load_checkpoint(path, model)
        check_data(path, loaded.spec, data)
        phase = str(loaded.made.get("phase", "final"))
        return GivenWeights(loaded.spec, loaded.weights, loaded.loss, phase, loaded.defences)
    if model is None:
        raise CheckpointError(f"{path} does not say what model it fits: name the model with --model")
    spec = ModelSpec(model, data.shape, data.classes, data.mean, data.std)
    weights = read_plain(path)
    check_shapes(path, expected_shapes(path, spec, ()), shapes_of(weights))
    check_finite(path, weights)
    return GivenWeights(spec, weights, CrossEntropy())


def check_data(path: Path, spec: ModelSpec, data: DataSet) -> None:
    """Refuse weights of a model for other images."""
    if (spec.shape, spec.classes) != (data.shape, data.classes):
        raise CheckpointError(
            f"{path} is for images of {spec.shape} in {spec.classes} classes, the data has {data.shape} in "
            f"{data.classes}: choose the data it was trained on"
        )


def read_plain(path: Path) -> Weights:
    """Read tensors by name, from safetensors or from what `torch.save` wrote of a `state_dict`."""
    if not path.is_file():
        raise CheckpointError(f"{path} is no file: name one that holds weights")
    try:
        if path.suffix == ".safetensors":
            return align(load_file(path))
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path} holds more than tensors, and code from a file is not run: {SAVE_WEIGHTS}"
        ) from error
    except Exception as error:  # what a damaged file makes the readers raise is not known
        raise CheckpointError(f"{path} cannot be read as weights ({type(error).__name__}): {SAVE_WEIGHTS}") from error
    return unwrap(path, content)


def unwrap(path: Path, content: Any) -> Weights:
    """Find the `state_dict` in what a file holds."""
    for name in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    if not isinstance(content, Mapping) or not content or not all(isinstance(one, Tensor) for one in content.values()):
        raise CheckpointError(f"{path} holds no state_dict, which maps names to tensors: {SAVE_WEIGHTS}")
    parallel = all(str(name).startswith(PARALLEL) for name in content)
    return {str(name).removeprefix(PARALLEL if parallel else ""): tensor.detach() for name, tensor in content.items()}
