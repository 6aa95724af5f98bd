import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.rng import generator
from gradveil.transforms import (
    CATALOGUE,
    CATALOGUES,
    OPERATIONS,
    Catalogue,
    Operation,
    Policy,
    PolicySet,
    Transform,
    find_catalogue,
    parse_policy,
)
from tests.transforms.pillow_reference import assert_equals_pillow, batches

# Index → operation:level, as published with the papers; it must never change.
V1 = """
    invert:7        contrast:6      rotate:2        translateX:9    sharpness:1
    sharpness:3     shearY:2        translateY:2    autocontrast:5  equalize:2
    shearY:5        posterize:5     color:3         brightness:5    sharpness:9
    brightness:9    equalize:5      equalize:1      contrast:7      sharpness:5
    color:5         translateX:5    equalize:7      autocontrast:8  translateY:3
    sharpness:6     brightness:6    color:8         solarize:0      invert:0
    equalize:0      autocontrast:0  equalize:8      equalize:4      color:5
    equalize:5      autocontrast:4  solarize:4      brightness:3    color:0
    solarize:1      autocontrast:0  translateY:3    translateY:3    autocontrast:1
    solarize:1      equalize:5      invert:0        translateY:3    autocontrast:1
"""


def darken(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Subtract the magnitude: an operation of a user's own."""
    return (images - magnitudes[:, None, None, None]).clamp(0, 255).to(torch.uint8)


@pytest.mark.parametrize("catalogue", CATALOGUES.values(), ids=lambda catalogue: catalogue.name)
def test_entries_are_the_published_ones(catalogue: Catalogue) -> None:
    assert [str(transform) for transform in catalogue.transforms] == V1.split()


def test_entries_are_27_functions_and_two_identities() -> None:
    functions = {transform.function for transform in CATALOGUE.transforms}
    assert len(functions - {"identity"}) == 27
    assert [index for index in range(50) if CATALOGUE[index].is_identity] == [28, 39]


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("shearX", (0, 0.3)),
        ("translateY", (0, 150 / 331)),
        ("rotate", (0, 30)),
        ("color", (0, 0.5)),
        ("posterize", (8, 4)),
        ("solarize", (256, 0)),
        ("invert", (0, 0)),
    ],
)
def test_magnitudes_run_linearly_over_ten_levels(name: str, ends: tuple[float, float]) -> None:
    operation = OPERATIONS[name]
    assert (operation.magnitude(0), operation.magnitude(9)) == ends
    assert operation.magnitude(3) == pytest.approx(ends[0] + (ends[1] - ends[0]) / 3)


def test_wide_catalogue_has_the_wider_range_for_enhancements_only() -> None:
    for ours, wide in zip(CATALOGUE.transforms, CATALOGUES["wide"].transforms, strict=True):
        stretched = ours.operation.name in ("color", "contrast", "sharpness", "brightness")
        assert wide.magnitude == pytest.approx(ours.magnitude * (1.8 if stretched else 1))


def test_wide_catalogue_is_chosen_by_name() -> None:
    assert parse_policy("wide/15").policies[0].transforms[0].magnitude == 0.9
    with pytest.raises(UnknownNameError, match="unknown catalogue 'wied': choose from v1, wide; did you mean 'wide'"):
        find_catalogue("wied")


def test_own_operation_takes_five_lines() -> None:
    darkening = Operation("darken", darken, high=90)
    mine = CATALOGUE.extend("mine", Transform(darkening, 9))
    policy = parse_policy("50-0", mine)
    images = torch.full((2, 3, 4, 4), 100, dtype=torch.uint8)
    assert (policy.transform(images, generator(0)) == 255 - 10).all()
    # It reads, prints, travels and differentiates like the others.
    assert str(policy) == "mine/50-0"
    assert policy.readable == "mine/darken:9 > invert:7"
    assert parse_policy(policy.readable, mine) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    pixels = (images / 255).requires_grad_()
    torch.autograd.backward(policy.differentiable(pixels, policy.sample(2, generator(0))).sum())
    assert pixels.grad is not None
    assert (pixels.grad == -1).all()


def test_own_operation_may_draw_signs_and_gradients() -> None:
    shift = Operation("shift", darken, high=90, signed=True, surrogate=lambda images, _: 2 * images)
    policy = Policy((0,), Catalogue("mine", (Transform(shift, 9),)))
    images = torch.full((40, 1, 2, 2), 100, dtype=torch.uint8)
    assert set(policy.transform(images, generator(0)).flatten().tolist()) == {10, 190}
    pixels = (images / 255).requires_grad_()
    torch.autograd.backward(policy.differentiable(pixels, policy.sample(40, generator(0))).sum())
    assert pixels.grad is not None
    assert (pixels.grad == 2).all()


@pytest.mark.parametrize("level", [-1, 10])
def test_level_out_of_range_is_refused(level: int) -> None:
    with pytest.raises(SettingsError, match=f"level {level} of invert: give a level from 0 to 9"):
        Transform(OPERATIONS["invert"], level)


@pytest.mark.parametrize("name", ["", "two words", "a-b", "x1"])
def test_operation_names_that_the_grammar_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="letters only"):
        Operation(name, darken)


def test_catalogue_names_that_the_grammar_cannot_hold_are_refused() -> None:
    with pytest.raises(SettingsError, match="letters, digits and _"):
        CATALOGUE.extend("my/own")


@pytest.mark.parametrize("catalogue", CATALOGUES.values(), ids=lambda catalogue: catalogue.name)
@given(batches(), st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_all_fifty_entries_equal_pillow(catalogue: Catalogue, images: Tensor, seed: int) -> None:
    for index in range(50):
        assert_equals_pillow(PolicySet((Policy((index,), catalogue),)), images, seed)
