"""Attacks by name."""

from pathlib import Path

import pytest

from gradveil.attacks import (
    ATTACKS,
    Descent,
    Ensemble,
    GradientMatching,
    Priors,
    Tiles,
    WithFeatures,
    cosine,
    find_attack,
    name_attack,
    opponent_slope,
    soft_sign,
    warm_cosine,
)
from gradveil.errors import UnknownNameError
from tests.attacks.scenes import recipe


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="adam-cosine"):
        find_attack("adam-cosin")


@pytest.mark.parametrize("name", ATTACKS)
def test_names_and_attacks_belong_together(name: str) -> None:
    assert find_attack(name) is ATTACKS[name]
    assert find_attack(ATTACKS[name]) is ATTACKS[name]
    assert name_attack(ATTACKS[name]) == name
    assert name_attack(name) == name


def test_settings_of_ones_own_have_the_name_of_their_class() -> None:
    assert name_attack(recipe("fast").with_steps(7)) == "gradient-matching"


def test_the_default_is_the_published_attack() -> None:
    assert ATTACKS["adam-cosine"] == GradientMatching()
    assert recipe("adam-cosine").descent.steps == 4800


def test_modern_has_the_settings_of_the_preset_in_breaching() -> None:
    modern = recipe("modern")
    assert modern.distance == WithFeatures(cosine, 0.1)
    assert modern.priors == Priors(total_variation=0.1, variation=opponent_slope)
    assert modern.start == Tiles(4)
    assert modern.descent == Descent(learning_rate=0.1, schedule=warm_cosine, steps=24_000, sign=soft_sign)
    assert (modern.restarts.count, modern.second_stage) == (1, None)


def test_the_page_says_what_standard_costs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "attacks.md").read_text()
    standard, sixth = ATTACKS["standard"], ATTACKS["standard-6"]
    assert f"computes {standard.gradients:,} gradients for an image, and `standard-6` {sixth.gradients:,}" in page
    assert f"The {standard.rehearsed_images} rehearsed images" in page
    assert f"up to {standard.public_images:,} public images" in page


def test_steps_reach_every_member_that_takes_any() -> None:
    shortened = ATTACKS["standard"].with_steps(40)
    assert isinstance(shortened, Ensemble)
    steps = {
        name: member.descent.steps for name, member in shortened.members.items() if isinstance(member, GradientMatching)
    }
    assert set(shortened.members) - set(steps) == {"analytic", "spear", "learned"}
    assert steps.pop("l-bfgs") == 2, "one of its steps takes twenty gradients"
    assert set(steps.values()) == {40}
