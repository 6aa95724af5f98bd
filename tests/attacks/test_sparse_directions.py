"""Directions in which a matrix is sparse."""

import torch

from gradveil.attacks.sparse_directions import find_directions, zeros_of
from gradveil.rng import generator


def test_sparse_columns_are_found_up_to_order_and_length() -> None:
    source = generator(2)
    columns = torch.randn(200, 5, generator=source, dtype=torch.float64)
    columns *= torch.rand(200, 5, generator=source) < 0.5
    left = torch.linalg.svd(columns, full_matrices=False).U
    lengths = torch.linalg.vector_norm(columns, dim=1)
    found = find_directions(left, lengths, lambda _: True, source, 2**14)
    assert found.shape == (5, 5)
    alike = torch.nn.functional.normalize(left @ found, dim=0).T @ torch.nn.functional.normalize(columns, dim=0)
    assert float(alike.abs().amax(0).min()) > 0.9999
    assert float(zeros_of(left, found, 1e-5).double().mean()) > 0.3


def test_dense_columns_have_no_such_directions() -> None:
    left = torch.linalg.svd(torch.randn(200, 5, generator=generator(3), dtype=torch.float64), full_matrices=False).U
    lengths = torch.linalg.vector_norm(left, dim=1)
    assert find_directions(left, lengths, lambda _: True, generator(4), 4096).shape[1] == 0


def test_one_column_needs_no_search() -> None:
    rows = torch.ones(7, 1)
    assert torch.equal(find_directions(rows, torch.ones(7), lambda _: False, generator(0), 1), torch.ones(1, 1))
