"""Declared hooks, and what the attacker's side asks of several defences together."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from gradveil.defences import Defence, build_defended, has_hook, known_deviation, known_policies, parse_arm
from gradveil.models import ModelSpec
from gradveil.types import Update


def test_a_hook_that_is_not_declared_is_refused_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match=r"set hooks = \('release',\)"):

        @dataclass(frozen=True)
        class Forgetful(Defence):
            def __str__(self) -> str:
                return "forgetful"

            def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
                return update


def test_a_hook_that_is_declared_in_vain_is_refused_too() -> None:
    with pytest.raises(TypeError, match="declares"):

        class Boastful(Defence):
            hooks = ("batch",)

            def __str__(self) -> str:
                return "boastful"


@pytest.mark.parametrize(
    ("arm", "hooks"),
    [
        ("none", set()),
        ("policy:3-1-7", {"batch"}),
        ("gaussian:1,no-base", {"release"}),
        ("dpsgd:noise=1:clip=1,no-base", {"model", "compute"}),
        ("precode,no-base", {"model"}),
    ],
)
def test_arms_have_the_hooks_of_their_defences(arm: str, hooks: set[str]) -> None:
    defences = parse_arm(arm).defences
    assert {hook for hook in ("model", "batch", "compute", "release") if has_hook(defences, hook)} == hooks


def test_noise_adds_up_and_averages_out_over_participants() -> None:
    both = parse_arm("gaussian:3,gaussian:4").defences
    assert known_deviation(both, 1) == pytest.approx(5)
    assert known_deviation(both, 4, participants=4) == pytest.approx(2.5)
    private = parse_arm("dpsgd:noise=2:clip=3").defences
    assert known_deviation(private, 8) == pytest.approx(2 * 3 / 8)


def test_noise_that_was_rounded_or_clipped_afterwards_is_not_of_known_strength() -> None:
    assert known_deviation(parse_arm("gaussian:1,sign").defences, 1) == 0
    assert known_deviation(parse_arm("sign,gaussian:1").defences, 1) == 1
    assert known_deviation(parse_arm("dpsgd:noise=1:clip=1,clip:1").defences, 1) == 0


def test_the_policies_of_an_arm_are_known_without_their_draws() -> None:
    assert str(known_policies(parse_arm("gaussian:1,policy:3-1-7+43-18-18").defences)) == "3-1-7+43-18-18"
    assert known_policies(parse_arm("crop-flip").defences) is None


def test_every_arm_starts_from_the_same_weights() -> None:
    spec = ModelSpec("lenet", (1, 12, 12), 4, (0.5,), (0.5,))
    plain, defended = (build_defended(spec, parse_arm(arm).defences, 3) for arm in ("none", "gaussian:1"))
    assert all(torch.equal(tensor, defended.state_dict()[name]) for name, tensor in plain.state_dict().items())
    bottleneck = build_defended(spec, parse_arm("precode:width=4").defences, 3)
    assert isinstance(bottleneck.get_submodule("head"), nn.Sequential)
