"""Blocks of images: whole ones are computed, the wanted rows are kept, and nonsense is refused."""

import pytest
import torch
from torch import Tensor

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.scores.base import block_size, check_choice, compute_blocks


def test_whole_blocks_are_computed_and_the_wanted_rows_kept() -> None:
    computed: list[range] = []

    def squares(members: range) -> Tensor:
        computed.append(members)
        return torch.tensor([[place, place**2] for place in members], dtype=torch.float32)

    rows = compute_blocks([9, 1, 9, 2], 10, 4, squares)
    assert rows.tolist() == [[9, 81], [1, 1], [9, 81], [2, 4]]
    assert rows.dtype == torch.float64
    assert computed == [range(4), range(8, 10)]
    assert len(compute_blocks(None, 10, 4, squares)) == 10


def test_a_block_holds_about_as_many_gradients_as_are_computed_together() -> None:
    assert [block_size(gradients) for gradients in (1, 2, 3, 4, 6, 20, 100)] == [16, 8, 8, 4, 4, 1, 1]


@pytest.mark.parametrize("places", [[], [-1], [10]])
def test_places_outside_are_refused(places: list[int]) -> None:
    with pytest.raises(SettingsError, match="places from 0 to 9"):
        compute_blocks(places, 10, 4, lambda _: torch.ones(4))


def test_an_unknown_choice_is_refused_with_those_allowed() -> None:
    check_choice("form", "whole", ("whole", "half"))
    with pytest.raises(UnknownNameError, match="unknown form 'quarter': choose from half, whole"):
        check_choice("form", "quarter", ("whole", "half"))
