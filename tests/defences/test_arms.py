"""Arms: what their strings mean."""

import pytest
import torch

from gradveil.defences import CropFlip, PolicyDefence, defend_batch, parse_arm, parse_defence
from gradveil.errors import InputError
from gradveil.rng import generator
from gradveil.types import Batch


def batch() -> Batch:
    images = torch.randint(0, 256, (6, 3, 12, 12), dtype=torch.uint8, generator=generator(0))
    return Batch(images, torch.arange(6))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("none", []),
        ("crop-flip", [CropFlip]),
        ("policy:3-1-7", [CropFlip, PolicyDefence]),
        ("policy:3-1-7,no-base", [PolicyDefence]),
        ("policy:3-1-7+43-18-18", [CropFlip, PolicyDefence]),
    ],
)
def test_an_arm_is_a_list_of_defences(text: str, kinds: list[type]) -> None:
    arm = parse_arm(text)
    assert arm.name == text
    assert [type(defence) for defence in arm.defences] == kinds


def test_the_base_comes_before_the_policy() -> None:
    base, policy = parse_arm("policy:3-1-7").defences
    source = generator(5)
    by_hand = policy.batch(base.batch(batch(), source), source)
    together = defend_batch(parse_arm("policy:3-1-7").defences, batch(), generator(5))
    assert torch.equal(by_hand.images, together.images)
    assert not torch.equal(together.images, batch().images)


@pytest.mark.parametrize(
    "text", ["", "policy", "policy:", "policy:99-1", "policy:3--1", "no-base", "polcy:3", "policy:3,policy"]
)
def test_nonsense_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as found:
        parse_arm(text)
    assert "\n" not in str(found.value)


def test_defences_print_as_arms_name_them() -> None:
    assert [str(defence) for defence in parse_arm("policy:3-1-7").defences] == ["crop-flip", "policy:3-1-7"]


def test_a_random_policy_is_drawn_by_its_seed() -> None:
    ten = {str(parse_defence(f"random-policy:{seed}")) for seed in range(10)}
    assert len(ten) == 10
    assert all(text.count("-") == 2 for text in ten)
