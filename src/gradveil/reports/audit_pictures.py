"""The pictures behind an audit's rows, as one value and as one safetensors file."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gradveil.errors import DataError, SettingsError
from gradveil.files import require_regular
from gradveil.results import PRIVATE, SEAL, write_file

REQUIRED = ("original", "transformed", "rebuilt")
GUESS = "rebuilt_original"


@dataclass(frozen=True, eq=False)
class Frames:
    """What an attack had on the way: `steps` numbers, and a picture S×C×H×W for each."""

    steps: tuple[int, ...]
    images: Tensor

    def __post_init__(self) -> None:
        if self.images.dim() != 4 or len(self.steps) != len(self.images) or not self.steps:
            raise SettingsError(
                f"{len(self.steps)} steps and pictures of shape {tuple(self.images.shape)}: give S×C×H×W for S steps"
            )


@dataclass(frozen=True, eq=False)
class Pictures:
    """The pictures of every row in order, float R×C×H×W in [0, 1]; zeros where an attack has no result.

    `rebuilt_original` is the attacker's guess of x where it tells that from its guess of T(x). `frames` maps the place
    of a row to the attack's way there.
    """

    original: Tensor
    transformed: Tensor
    rebuilt: Tensor
    rebuilt_original: Tensor | None = None
    frames: Mapping[int, Frames] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = tuple(self.original.shape)
        for name, tensor in self.by_name().items():
            if len(shape) != 4 or tuple(tensor.shape) != shape:
                raise SettingsError(f"{name} pictures of shape {tuple(tensor.shape)}: all must be the same R×C×H×W")
        for row, frames in self.frames.items():
            if not 0 <= row < len(self) or tuple(frames.images.shape[1:]) != shape[1:]:
                raise SettingsError(f"frames of row {row} of shape {tuple(frames.images.shape)}: the row does not fit")

    def __len__(self) -> int:
        return len(self.original)

    def by_name(self) -> dict[str, Tensor]:
        """Return the tensors that have one picture for each row."""
        named = {name: getattr(self, name) for name in REQUIRED}
        return named if self.rebuilt_original is None else {**named, GUESS: self.rebuilt_original}

    def to_tensors(self) -> dict[str, Tensor]:
        """Return every tensor as it stands in the file."""
        tensors = {name: tensor.detach().float().cpu().contiguous() for name, tensor in self.by_name().items()}
        for row, frames in sorted(self.frames.items()):
            tensors[f"frames/{row}"] = frames.images.detach().float().cpu().contiguous()
            tensors[f"frame_steps/{row}"] = torch.tensor(frames.steps, dtype=torch.int64)
        return tensors


def hash_pictures(pictures: Pictures) -> str:
    """Return the SHA-256 of the names, shapes and values of all tensors."""
    found = hashlib.sha256()
    for name, tensor in sorted(pictures.to_tensors().items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()


def write_pictures(path: Path, pictures: Pictures, seal: str) -> None:
    """Write the file so that only its owner can read it; `seal` is that of the record that the pictures belong to."""
    write_file(path, save(apart(pictures.to_tensors()), {SEAL: seal}), PRIVATE)


def apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors that share memory, as x and T(x) may without a transformation: safetensors refuses them."""
    seen: set[int] = set()
    copies = {}
    for name, tensor in tensors.items():
        memory = tensor.untyped_storage().data_ptr()
        copies[name] = tensor.clone() if memory in seen else tensor
        seen.add(memory)
    return copies


def read_pictures(path: Path) -> tuple[Pictures, str]:
    """Read the pictures and the seal of the record that they belong to."""
    try:
        require_regular(path)
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
            seal = (file.metadata() or {}).get(SEAL, "")
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path} cannot be read as safetensors: {error}; copy it again") from error
    missing = [name for name in REQUIRED if name not in tensors]
    if missing:
        raise DataError(f"{path} has no {', '.join(missing)} pictures: give a file that gradveil audit wrote")
    try:
        return to_pictures(tensors), seal
    except (KeyError, ValueError, SettingsError) as error:
        raise DataError(f"{path} does not hold the pictures of an audit: {error}; copy it again") from error


def to_pictures(tensors: Mapping[str, Tensor]) -> Pictures:
    frames = {
        int(name.removeprefix("frames/")): Frames(
            tuple(tensors[name.replace("frames/", "frame_steps/")].tolist()), tensor
        )
        for name, tensor in tensors.items()
        if name.startswith("frames/")
    }
    original, transformed, rebuilt = (tensors[name] for name in REQUIRED)
    return Pictures(original, transformed, rebuilt, tensors.get(GUESS), dict(sorted(frames.items())))
