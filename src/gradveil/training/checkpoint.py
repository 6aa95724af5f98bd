"""Checkpoints: weights as safetensors, and beside them a JSON that says what model they fit and how they were made.

A checkpoint from elsewhere is data: loading one runs no code of its own, and nothing is read of the weights before
their names, types and shapes are known to fit.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor, nn

from gradveil.defences import Defence, defend_model, parse_defences
from gradveil.errors import CheckpointError, DataError, InputError
from gradveil.files import require_regular
from gradveil.losses import CrossEntropy, Loss, parse_loss
from gradveil.models import ModelSpec, factory
from gradveil.results import read_hashed, read_sealed, seal, to_json, write_file
from gradveil.rng import generator
from gradveil.tensor_files import align
from gradveil.training.settings import TrainingSettings

SCHEMA = 1
SHOWN = 3
MODEL_DEFENCES = "model_defences"
Weights = dict[str, Tensor]
"""The parameters and buffers of a model, by name."""
Shapes = dict[str, tuple[str, tuple[int, ...]]]
TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Weights that are known to fit the model of `spec` as `defences` changed it, and how they were made."""

    weights: Weights
    spec: ModelSpec
    made: Mapping[str, Any]
    defences: tuple[Defence, ...] = ()

    @property
    def loss(self) -> Loss:
        """Return the loss that the weights were trained with; plain cross-entropy if the file does not say."""
        settings = self.made.get("settings")
        return parse_loss(TrainingSettings.from_record(settings).loss) if isinstance(settings, dict) else CrossEntropy()

    def build(self) -> nn.Module:
        """Make the model with these weights, in evaluation mode."""
        source = generator(0, "checkpoint")
        model = defend_model(self.defences, self.spec.build(source), source)
        model.load_state_dict(self.weights)
        return model.eval()


def save_checkpoint(path: Path, weights: Weights, spec: ModelSpec | None, made: Mapping[str, Any]) -> None:
    """Write `path` (.safetensors) and the JSON beside it; without `spec` only who has the model can use it."""
    content = save(weights)
    record = {
        "schema": SCHEMA,
        "model": None if spec is None else spec.to_record(),
        "made": dict(made),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    write_file(path, content)
    write_file(path.with_suffix(".json"), to_json(seal(json.loads(json.dumps(record)))))


def load_checkpoint(path: Path, model: str | None = None) -> Checkpoint:
    """Load and check a checkpoint.

    `model` is the name the person expects. One's own factory is imported only if it is named here: a file alone must
    not decide what code runs.
    """
    record = read_record(path)
    spec = read_spec(path, record)
    if model is not None and model != spec.name:
        raise CheckpointError(f"{path} is a checkpoint of '{spec.name}', not of '{model}': ask for '{spec.name}'")
    if ":" in spec.name and model is None:
        raise CheckpointError(
            f"{path} needs the factory '{spec.name}', which is code: name it yourself (--model {spec.name}) if you "
            "trust it"
        )
    defences = read_defences(path, record["made"])
    return Checkpoint(read_weights(path, expected_shapes(path, spec, defences), record), spec, record["made"], defences)


def read_record(path: Path) -> dict[str, Any]:
    """Read the JSON beside the weights and check its seal, which covers the hash of the weights as well."""
    described = path.with_suffix(".json")
    try:
        record = read_sealed(described)
    except DataError as error:
        raise CheckpointError(str(error)) from error
    if record.get("schema") != SCHEMA or not isinstance(record.get("made"), dict):
        raise CheckpointError(
            f"{described} describes no checkpoint of schema {SCHEMA}: write it anew with this version"
        )
    return record


def read_spec(path: Path, record: Mapping[str, Any]) -> ModelSpec:
    model = record.get("model")
    if not isinstance(model, dict):
        raise CheckpointError(f"{path} does not say what model it fits: load its weights into the model you have")
    try:
        return ModelSpec.from_record(model)
    except InputError as error:
        raise CheckpointError(f"{path.with_suffix('.json')}: {error}") from error


def read_defences(path: Path, made: Mapping[str, Any]) -> tuple[Defence, ...]:
    """Read the defences that changed the model before it was trained."""
    texts = made.get(MODEL_DEFENCES, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise CheckpointError(
            f"{path.with_suffix('.json')} names {texts} as the model's defences: give a list of texts"
        )
    try:
        return parse_defences(texts)
    except InputError as error:
        raise CheckpointError(f"{path.with_suffix('.json')}: {error}") from error


def expected_shapes(path: Path, spec: ModelSpec, defences: Sequence[Defence]) -> Shapes:
    """Build the model, without memory if it is ours, to learn the shapes of its weights."""
    try:
        with torch.random.fork_rng(devices=[]), torch.device("cpu" if ":" in spec.name else "meta"):
            model = factory(spec.name)(spec.shape, spec.classes, spec.mean, spec.std)
            return shapes_of(defend_model(defences, model, generator(0, "checkpoint")).state_dict())
    except (InputError, RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{path} is of a model that cannot be built: {error}") from error


def check_fit(path: Path, spec: ModelSpec, defences: Sequence[Defence], weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that are not those of the model; nothing of its size is allocated, because a file names it."""
    check_shapes(path, expected_shapes(path, spec, defences), shapes_of(weights))


def shapes_of(weights: Mapping[str, Tensor]) -> Shapes:
    return {name: (TYPES.get(tensor.dtype, "?"), tuple(tensor.shape)) for name, tensor in weights.items()}


def read_weights(path: Path, expected: Shapes, record: Mapping[str, Any]) -> Weights:
    """Read the weights after checking their shapes, then check their hash and that they are finite."""
    try:
        require_regular(path)
        check_shapes(path, expected, stored_shapes(path))
        weights: Weights = align(load(read_hashed(path, record.get("sha256"))))
    except DataError as error:
        raise CheckpointError(str(error)) from error
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} cannot be read as safetensors: {error}") from error
    check_finite(path, weights)
    return weights


def stored_shapes(path: Path) -> Shapes:
    """Read names, types and shapes from the header, without the weights."""
    with safe_open(path, framework="pt") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}


def check_shapes(path: Path, expected: Shapes, found: Shapes) -> None:
    """Refuse weights of another architecture, naming the first few differences."""
    wrong = [
        f"{name} is {describe(found.get(name))} instead of {describe(expected.get(name))}"
        for name in (*expected, *(extra for extra in found if extra not in expected))
        if found.get(name) != expected.get(name)
    ]
    if wrong:
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise CheckpointError(f"{path} does not fit the model: {'; '.join(wrong[:SHOWN])}{more}")


def describe(entry: tuple[str, tuple[int, ...]] | None) -> str:
    return "missing" if entry is None else f"{entry[0]}{list(entry[1])}"


def check_finite(path: Path, weights: Weights) -> None:
    for name, tensor in weights.items():
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"{path} holds NaN or infinity in '{name}': it cannot be used; train it again")
