"""Policies and policy sets."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradveil.errors import PolicyError, SettingsError
from gradveil.rng import generator
from gradveil.transforms import CATALOGUES, Policy, PolicyDraws, PolicySet, parse_policy, share_transforms
from tests.transforms.pillow_reference import assert_equals_pillow, batches
from tests.transforms.test_base import HYBRID, make_images


def test_none_changes_nothing_but_copies() -> None:
    images = make_images()
    done = parse_policy("none").transform(images, generator(0))
    assert torch.equal(done, images)
    assert done.data_ptr() != images.data_ptr()


def test_policies_are_values() -> None:
    twin = parse_policy("3-1-7+43-18-18")
    assert twin == HYBRID
    assert hash(twin) == hash(HYBRID)
    assert len({twin, HYBRID, parse_policy("43-18-18+3-1-7"), parse_policy("wide/3-1-7+43-18-18")}) == 3
    with pytest.raises(AttributeError):
        HYBRID.policies = ()  # type: ignore[misc]


def test_images_of_a_batch_draw_each_for_itself() -> None:
    draws = HYBRID.sample(4000, generator(3))
    assert draws.members.bincount().tolist() == pytest.approx([2000, 2000], abs=150)
    for member in (0, 1):
        assert draws.signs[draws.members == member].double().mean(0).abs().max() < 0.08


def test_steps_without_a_sign_hold_plus_one() -> None:
    draws = parse_policy("9-39-14+2").sample(200, generator(4))
    assert (draws.signs[:, :2] == 1).all()
    assert (draws.signs[draws.members == 1] == 1).all()
    assert set(draws.signs[draws.members == 0, 2].tolist()) == {-1, 1}


def test_draws_are_taken_joined_and_indexed() -> None:
    images = make_images()
    draws = HYBRID.sample(8, generator(5))
    order = torch.tensor([5, 0, 7])
    assert torch.equal(HYBRID.apply(images[order], draws.take(order)), HYBRID.apply(images, draws)[order])
    whole = PolicyDraws.join([draws[index] for index in range(8)])
    assert torch.equal(whole.members, draws.members)
    assert torch.equal(whole.signs, draws.signs)
    assert torch.equal(draws[-1].signs, draws.signs[-1:])
    with pytest.raises(IndexError):
        draws[8]


@pytest.mark.parametrize(
    ("text", "count"), [("none", 1), ("9", 1), ("3", 2), ("3-1-7", 8), ("3-1-7+43-18-18", 16), ("2-39-20+none+4", 5)]
)
def test_all_possible_draws_are_listed_once(text: str, count: int) -> None:
    policies = parse_policy(text)
    draws = policies.draws()
    rows = {(int(member), tuple(signs.tolist())) for member, signs in zip(draws.members, draws.signs, strict=True)}
    assert len(draws) == len(rows) == count
    assert policies.probabilities(draws).sum() == pytest.approx(1)
    sampled = policies.sample(500, generator(6))
    assert {(int(m), tuple(s.tolist())) for m, s in zip(sampled.members, sampled.signs, strict=True)} == rows


def test_probabilities_follow_the_number_of_signs() -> None:
    policies = parse_policy("9+3-1")
    assert policies.probabilities(policies.draws()).tolist() == [0.5, 0.125, 0.125, 0.125, 0.125]


def test_draws_of_no_usable_shape_are_refused() -> None:
    with pytest.raises(SettingsError, match="they must be N and N×steps"):
        PolicyDraws(torch.zeros(3, dtype=torch.int64), torch.ones(2, 3, dtype=torch.int8))


def test_draws_of_another_policy_are_refused() -> None:
    images = make_images()
    with pytest.raises(SettingsError, match="draws with 1 signs for 3-1-7, which has 3 steps"):
        Policy((3, 1, 7)).apply(images, Policy((3,)).sample(8, generator(0)))
    with pytest.raises(SettingsError, match=r"draws of more members than 3-1-7\+43-18-18 has"):
        HYBRID.apply(images, parse_policy("3-1-7+3-1-7+3-1-7").sample(8, generator(1)))


@given(st.lists(st.integers(0, 49), max_size=3).map(tuple), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_function_names_what_is_computed(indices: tuple[int, ...], seed: int) -> None:
    """Policies of one name give the same images for the same signs."""
    policy = Policy(indices)
    twin = parse_policy(policy.readable).policies[0]
    assert twin.function == policy.function
    images = make_images(4, side=9)
    draws = policy.sample(4, generator(seed))
    assert torch.equal(policy.apply(images, draws), twin.apply(images, draws))


def test_shared_indices_and_functions_are_reported() -> None:
    published = share_transforms(Policy((42, 28, 42)), Policy((14, 48, 48)))
    assert published.indices == frozenset()
    assert published.functions == {"translateY:3"}
    apart = share_transforms(Policy((3, 1, 7)), Policy((43, 18, 18)))
    assert (apart.indices, apart.functions) == (frozenset(), frozenset())
    same = share_transforms(Policy((3, 39)), Policy((39, 3)))
    assert same.indices == {3, 39}
    assert same.functions == {"translateX:9"}


def test_policies_out_of_range_are_refused() -> None:
    with pytest.raises(PolicyError, match="index 50 is not in catalogue v1: choose from 0 to 49"):
        Policy((3, 50))
    with pytest.raises(PolicyError, match="index -1"):
        Policy((-1,))
    with pytest.raises(PolicyError, match="4 steps: at most 3"):
        Policy((1, 2, 3, 4))
    with pytest.raises(PolicyError, match="without policies"):
        PolicySet(())
    with pytest.raises(PolicyError, match="catalogues v1, wide in one set"):
        PolicySet((Policy((1,)), Policy((1,), CATALOGUES["wide"])))


@given(
    batches(),
    st.lists(st.lists(st.integers(0, 49), max_size=3).map(tuple), min_size=1, max_size=3),
    st.sampled_from(sorted(CATALOGUES)),
    st.integers(0, 2**32),
)
@settings(max_examples=300, deadline=None)
def test_policies_equal_pillow(images: Tensor, members: list[tuple[int, ...]], name: str, seed: int) -> None:
    policies = PolicySet(tuple(Policy(member, CATALOGUES[name]) for member in members))
    assert_equals_pillow(policies, images, seed)
