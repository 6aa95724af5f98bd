import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradveil.rng import generator
from gradveil.transforms import (
    CATALOGUES,
    OPERATIONS,
    Catalogue,
    Operation,
    Policy,
    PolicySet,
    Transform,
    pillow,
    running,
)
from tests.transforms.pillow_reference import apply_all, apply_policy, batches

EVERYTHING = Catalogue(
    "everything", tuple(Transform(operation, level) for operation in OPERATIONS.values() for level in range(10))
)
indices = st.integers(0, 49)


def assert_equals_pillow(policies: PolicySet, images: Tensor, seed: int) -> None:
    draws = policies.sample(len(images), generator(seed))
    assert torch.equal(policies.apply(images, draws), apply_policy(policies, images, draws)), policies.readable


def magnitudes_of(operation: Operation) -> st.SearchStrategy[float]:
    """Draw any magnitude in the operation's range, with either sign if it has one; half as far again as AutoAugment."""
    low, high = sorted((operation.low, operation.high))
    if operation.signed:
        return st.floats(-1.5 * high, 1.5 * high)
    return st.floats(low, high)


@pytest.mark.parametrize("name", OPERATIONS)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_kernel_equals_pillow_for_any_magnitudes(name: str, data: st.DataObject) -> None:
    images = data.draw(batches())
    magnitude = magnitudes_of(OPERATIONS[name])
    drawn = data.draw(st.lists(magnitude, min_size=len(images), max_size=len(images)))
    magnitudes = torch.tensor(drawn, dtype=torch.float64)
    before = images.clone()
    assert torch.equal(OPERATIONS[name].kernel(images, magnitudes), apply_all(name, images, magnitudes))
    assert torch.equal(images, before)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("shape", [(1, 31, 28), (3, 32, 32), (3, 17, 33)], ids=str)
def test_every_level_equals_pillow(name: str, shape: tuple[int, int, int]) -> None:
    images = torch.randint(256, (4, *shape), generator=generator(0, *shape)).to(torch.uint8)
    for index, transform in enumerate(EVERYTHING.transforms):
        if transform.operation.name == name:
            assert_equals_pillow(PolicySet((Policy((index,), EVERYTHING),)), images, index)


@pytest.mark.parametrize("catalogue", CATALOGUES.values(), ids=lambda catalogue: catalogue.name)
@given(batches(), st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_all_fifty_entries_equal_pillow(catalogue: Catalogue, images: Tensor, seed: int) -> None:
    for index in range(50):
        assert_equals_pillow(PolicySet((Policy((index,), catalogue),)), images, seed)


@given(
    batches(),
    st.lists(st.lists(indices, max_size=3).map(tuple), min_size=1, max_size=3),
    st.sampled_from(sorted(CATALOGUES)),
    st.integers(0, 2**32),
)
@settings(max_examples=300, deadline=None)
def test_policies_equal_pillow(images: Tensor, members: list[tuple[int, ...]], name: str, seed: int) -> None:
    policies = PolicySet(tuple(Policy(member, CATALOGUES[name]) for member in members))
    assert_equals_pillow(policies, images, seed)


@given(batches(), st.lists(st.sampled_from([8, 9, 13, 0, 11, 37, 40]), min_size=3, max_size=3).map(tuple))
@settings(max_examples=150, deadline=None)
def test_maps_of_values_in_one_table_equal_pillow(images: Tensor, members: tuple[int, ...]) -> None:
    assert_equals_pillow(PolicySet((Policy(members),)), images, 3)


@pytest.mark.parametrize("size", [(331, 2), (2, 331), (97, 211)], ids=str)
def test_large_and_odd_sizes_equal_pillow(size: tuple[int, int]) -> None:
    images = torch.randint(256, (2, 3, *size), generator=generator(5)).to(torch.uint8)
    for index in range(len(EVERYTHING)):
        assert_equals_pillow(PolicySet((Policy((index,), EVERYTHING),)), images, index)


def test_equalize_of_many_pixels_is_exact() -> None:
    """Above four million pixels the counts no longer fit into single precision."""
    row = torch.arange(2100).remainder(251).to(torch.uint8)
    image = (row[:, None] ^ row[None])[None, None]
    none = torch.zeros(1, dtype=torch.float64)
    assert torch.equal(OPERATIONS["equalize"].kernel(image, none), apply_all("equalize", image, none))
    assert torch.equal(OPERATIONS["contrast"].kernel(image, none + 0.3), apply_all("contrast", image, none + 0.3))


@pytest.mark.parametrize(
    "magnitude", [0.5 / 32, -0.5 / 32, math.nextafter(0.5 / 32, 0), math.nextafter(0.5 / 32, 1), 1.0, -1.0, 2.0]
)
@pytest.mark.parametrize("name", ["translateX", "translateY", "shearX", "shearY"])
def test_moves_by_halves_and_out_of_sight_equal_pillow(name: str, magnitude: float) -> None:
    """Half a pixel is where the nearest one changes; a whole side leaves nothing in sight."""
    images = torch.randint(256, (2, 3, 32, 32), generator=generator(6)).to(torch.uint8)
    magnitudes = torch.tensor([magnitude, -magnitude], dtype=torch.float64)
    assert torch.equal(OPERATIONS[name].kernel(images, magnitudes), apply_all(name, images, magnitudes))


@pytest.mark.parametrize("degrees", [90.0, 180.0, 270.0, 360.0, -45.0])
def test_rotations_that_pillow_treats_apart_equal_it(degrees: float) -> None:
    images = torch.randint(256, (1, 3, 12, 12), generator=generator(7)).to(torch.uint8)
    magnitudes = torch.tensor([degrees], dtype=torch.float64)
    assert torch.equal(OPERATIONS["rotate"].kernel(images, magnitudes), apply_all("rotate", images, magnitudes))


def test_result_does_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.randint(256, (23, 3, 12, 10), generator=generator(8)).to(torch.uint8)
    policies = PolicySet((Policy((3, 10, 9)), Policy((14, 22, 8))))
    draws = policies.sample(len(images), generator(9))
    together = policies.apply(images, draws)
    monkeypatch.setattr(running, "CHUNK", 3 * images[0].numel())
    assert torch.equal(policies.apply(images, draws), together)
    alone = [policies.apply(images[i : i + 1], draws[i]) for i in range(len(images))]
    assert torch.equal(torch.cat(alone), together)


def test_images_that_are_not_contiguous_are_taken() -> None:
    stored = torch.randint(256, (4, 8, 9, 3), generator=generator(10)).to(torch.uint8)
    images = stored.permute(0, 3, 1, 2)
    for index in range(50):
        policies = PolicySet((Policy((index,)),))
        draws = policies.sample(4, generator(11))
        assert torch.equal(policies.apply(images, draws), policies.apply(images.contiguous(), draws))


def test_reference_is_complete() -> None:
    assert set(pillow.OPERATIONS) == set(OPERATIONS)
