"""Seeds and streams."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradveil.errors import SettingsError
from gradveil.rng import MAX_SEED, derive, generator, global_state_from, split

seeds = st.integers(0, MAX_SEED)
names = st.lists(st.one_of(st.text(max_size=8), st.integers(-5, 10**6)), max_size=4)


@given(seeds, names)
def test_the_same_names_give_the_same_stream(seed: int, parts: list[str | int]) -> None:
    first, second = (torch.rand(5, generator=generator(seed, *parts)) for _ in range(2))
    assert torch.equal(first, second)


@given(seeds, names, names)
def test_other_names_give_another_stream(seed: int, first: list[str | int], second: list[str | int]) -> None:
    if [repr(part) for part in first] != [repr(part) for part in second]:
        assert derive(seed, *first) != derive(seed, *second)


@given(seeds)
def test_names_are_kept_apart(seed: int) -> None:
    variants: list[tuple[str | int, ...]] = [("ab", "c"), ("a", "bc"), ("abc",), (1,), ("1",), (1, 1), (11,), ()]
    assert len({derive(seed, *variant) for variant in variants}) == len(variants)


def test_streams_of_neighbouring_names_are_uncorrelated() -> None:
    draws = torch.stack([torch.randn(4000, generator=generator(0, "stream", index)) for index in range(20)])
    off_diagonal = torch.corrcoef(draws)[~torch.eye(20, dtype=torch.bool)]
    assert off_diagonal.abs().max() < 0.08


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(SettingsError, match="from 0 to"):
        derive(seed, "x")


def test_split_gives_streams_that_differ_and_repeat() -> None:
    first = [torch.rand(1, generator=part).item() for part in split(generator(1), 8)]
    second = [torch.rand(1, generator=part).item() for part in split(generator(1), 8)]
    assert first == second
    assert len(set(first)) == 8


def test_global_state_is_lent_and_put_back() -> None:
    before = torch.random.get_rng_state()
    with global_state_from(generator(3)):
        first = torch.rand(4)
    with global_state_from(generator(3)):
        second = torch.rand(4)
    assert torch.equal(first, second)
    assert torch.equal(before, torch.random.get_rng_state())
