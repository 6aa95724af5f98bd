"""Sealed tensors: all that a file holds is under its hash."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from gradveil.errors import DataError
from gradveil.tensor_files import read_sealed_tensors, seal_tensors

TENSORS = {
    "weights": torch.arange(6.0).view(2, 3).t(),
    "count": torch.tensor(7),
    "half": torch.ones(2, dtype=torch.bfloat16),
    "mask": torch.tensor([True, False]),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "state.safetensors"
    place.write_bytes(seal_tensors(TENSORS, "run", '{"step": 3}'))
    return place


def test_what_goes_in_comes_out(path: Path) -> None:
    tensors, text = read_sealed_tensors(path, "run")
    assert text == '{"step": 3}'
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in TENSORS.items())
    assert all(tensors[name].dtype == tensor.dtype for name, tensor in TENSORS.items())


def test_no_flipped_bit_goes_unseen(path: Path) -> None:
    """A flip may be harmless, in the padding of the header; it never gives other tensors or another text."""
    whole = path.read_bytes()
    refusals = []
    for place in range(0, 8 * len(whole), 3):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            tensors, text = read_sealed_tensors(path, "run")
            assert text == '{"step": 3}'
            assert all(torch.equal(tensors[name], tensor) for name, tensor in TENSORS.items())
        except DataError as error:
            refusals.append(str(error))
    assert len(refusals) > 0.95 * len(range(0, 8 * len(whole), 3))
    assert all(str(path) in text and "\n" not in text for text in refusals)


def test_other_files_are_refused(path: Path) -> None:
    with pytest.raises(DataError, match="SHA-256 differs"):
        read_sealed_tensors(path, "state")
    path.write_bytes(save({"a": torch.zeros(1)}))
    with pytest.raises(DataError, match="has no seal"):
        read_sealed_tensors(path, "run")
    path.write_bytes(b"torn")
    with pytest.raises(DataError, match="cannot be read"):
        read_sealed_tensors(path, "run")
    with pytest.raises(DataError, match="cannot be read"):
        read_sealed_tensors(path.with_name("missing"), "run")
