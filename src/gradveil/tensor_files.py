"""Tensors on disk that carry the SHA-256 of all that is in their file."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gradveil.errors import DataError
from gradveil.files import require_regular

DIGEST = "sha256"
FAULTS = (OSError, SafetensorError, ValueError, KeyError, RuntimeError)
"""What reading raises on a file that is missing, cut off or altered."""


def seal_tensors(tensors: Mapping[str, Tensor], name: str, text: str) -> bytes:
    """Write tensors and one text, called `name`, in the safetensors format, with the hash of both."""
    whole = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
    content: bytes = save(whole, {name: text, DIGEST: digest(whole, text)})
    return content


def read_sealed_tensors(path: Path, name: str) -> tuple[dict[str, Tensor], str]:
    """Read what `seal_tensors` wrote; a file that is damaged, changed or not of its kind is refused."""
    try:
        require_regular(path)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  # it is no mapping
    except FAULTS as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if DIGEST not in metadata:
        raise DataError(f"{path} has no seal: gradveil did not write it, or a version without seals did")
    if name not in metadata or digest(tensors, metadata[name]) != metadata[DIGEST]:
        raise DataError(f"{path} was changed or damaged (its SHA-256 differs)")
    return align(tensors), metadata[name]


def align(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors to memory of torch's own, in the order of their names.

    safetensors leaves each where its bytes happen to lie and names them in any order; the last bits of a sum over them
    depend on both.
    """
    return {name: tensors[name].clone() for name in sorted(tensors)}


def digest(tensors: Mapping[str, Tensor], text: str) -> str:
    """Hash names, types, shapes and values, whatever their order, and the text."""
    return hashlib.sha256(save(dict(tensors)) + text.encode()).hexdigest()
