"""Public and private training images."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradveil.data import DataSet, choose_private, choose_public
from gradveil.data.base import ImageSet, assemble
from gradveil.errors import SettingsError
from gradveil.rng import generator

COUNT = 40


def make_data() -> DataSet:
    """Make images whose first pixel is their number."""
    images = torch.randint(256, (COUNT, 1, 4, 4), generator=generator(0, "images")).to(torch.uint8)
    images[:, 0, 0, 0] = torch.arange(COUNT)
    every = ImageSet(images, torch.arange(COUNT) % 2)
    return assemble("numbered", every, every, ("even", "odd"))


def numbers(images: ImageSet) -> list[int]:
    return [int(number) for number in images.images[:, 0, 0, 0]]


DATA = make_data()


def test_the_public_images_are_the_first_of_a_fixed_order() -> None:
    order = torch.randperm(COUNT, generator=generator(3, "floor", "images")).tolist()
    chosen = choose_public(DATA, 10, 3)
    assert numbers(chosen) == order[:10]
    assert chosen.labels.tolist() == [number % 2 for number in order[:10]]
    assert numbers(choose_public(DATA, 10**6, 3)) == order
    assert numbers(choose_public(DATA, 10, 4)) != order[:10]


@given(st.integers(0, COUNT), st.integers(0, COUNT), st.integers(0, 1000))
def test_private_images_are_never_public(public: int, private: int, seed: int) -> None:
    if public + private > COUNT:
        with pytest.raises(
            SettingsError, match=rf"40 training images of numbered leave {COUNT - public}; ask for fewer"
        ):
            choose_private(DATA, private, seed, public=public)
        return
    ours = numbers(choose_private(DATA, private, seed, public=public))
    assert len(set(ours)) == private
    assert not set(ours) & set(numbers(choose_public(DATA, public, seed)))


def test_the_number_of_public_images_does_not_change_the_private_ones() -> None:
    choices = [numbers(choose_private(DATA, 5, 0, public=public)) for public in (0, 10, 35)]
    assert choices[0] == choices[1] == choices[2]
