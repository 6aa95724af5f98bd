import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from gradveil.rng import generator
from gradveil.transforms import OPERATIONS, Catalogue, Policy, PolicySet, Transform, parse_policy

EACH = Catalogue("each", tuple(Transform(operation, 5) for operation in OPERATIONS.values()))
SETS = [PolicySet((Policy((index,), EACH),)) for index in range(len(EACH))]
SETS += [parse_policy(text) for text in ("9-22-8", "10-14-20", "3-1-7+43-18-18")]


def highest_bytes(policies: PolicySet, images: Tensor) -> int:
    """Give the most that torch had allocated at once while it applied the policies."""
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
