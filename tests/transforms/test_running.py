"""Running the steps of a policy over a batch."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from gradveil.rng import generator
from gradveil.transforms import OPERATIONS, Catalogue, Policy, PolicySet, Transform, parse_policy, running
from gradveil.transforms.running import run_groups
from tests.transforms.pillow_reference import assert_equals_pillow, batches

EACH = Catalogue("each", tuple(Transform(operation, 5) for operation in OPERATIONS.values()))
SETS = [PolicySet((Policy((index,), EACH),)) for index in range(len(EACH))]
SETS += [parse_policy(text) for text in ("9-22-8", "10-14-20", "3-1-7+43-18-18")]


@given(batches(), st.lists(st.sampled_from([8, 9, 13, 0, 11, 37, 40]), min_size=3, max_size=3).map(tuple))
@settings(max_examples=150, deadline=None)
def test_maps_of_values_in_one_table_equal_pillow(images: Tensor, members: tuple[int, ...]) -> None:
    assert_equals_pillow(PolicySet((Policy(members),)), images, 3)


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


def test_images_keep_their_places_when_groups_are_computed_apart() -> None:
    images = torch.arange(6.0).view(6, 1, 1, 1)
    groups = torch.tensor([2, 0, 2, 0, 0, 2])
    functions = [partial(torch.add, other=100.0 * group) for group in range(3)]
    assert run_groups(images, groups, functions).flatten().tolist() == [200, 1, 202, 3, 4, 205]


def highest_bytes(policies: PolicySet, images: Tensor) -> int:
    """Measure the most that torch had allocated at once while it applied the policies."""
    draws = policies.sample(len(images), generator(0))
    policies.apply(images, draws)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        policies.apply(images, draws)
    allocated = highest = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            allocated += event.nbytes()
            highest = max(highest, allocated)
    return highest


@pytest.mark.parametrize("policies", SETS, ids=lambda policies: policies.readable)
def test_memory_stays_below_40_bytes_per_pixel(monkeypatch: pytest.MonkeyPatch, policies: PolicySet) -> None:
    monkeypatch.setenv("KINETO_LOG_LEVEL", "6")
    for count, side in ((128, 32), (128, 64)):
        images = torch.randint(256, (count, 3, side, side), generator=generator(1)).to(torch.uint8)
        assert images.numel() <= highest_bytes(policies, images) < 40 * count * side * side
