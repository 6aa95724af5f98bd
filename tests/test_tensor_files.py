"""Sealed tensors: all that a file holds is under its hash."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

from gradveil.errors import DataError
from gradveil.tensor_files import align, read_sealed_tensors, seal_tensors

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


def test_tensors_lie_where_torch_puts_its_own(tmp_path: Path) -> None:
    """The last bits of a sum depend on where its numbers lie; a result must not depend on where a file was read to."""
    sizes = {f"tensor {size}": torch.arange(float(size)) for size in range(3, 60, 7)}
    (tmp_path / "state.safetensors").write_bytes(seal_tensors(sizes, "run", ""))
    tensors, _ = read_sealed_tensors(tmp_path / "state.safetensors", "run")
    assert all(tensor.data_ptr() % 64 == 0 for tensor in tensors.values())


def test_tensors_come_in_the_order_of_their_names() -> None:
    """Safetensors names them in another order at each reading, and a sum over all would differ in its last bits."""
    content = save({f"tensor {number}": torch.zeros(number) for number in range(1, 8)})
    assert {tuple(align(load(content))) for _ in range(100)} == {tuple(f"tensor {number}" for number in range(1, 8))}


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
