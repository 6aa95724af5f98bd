"""Presets: what they hold does not change without another version."""

import pytest

from gradveil.audit import DEFAULT_ARMS, PRESETS, AuditSettings, change_settings, find_preset
from gradveil.errors import UnknownNameError
from gradveil.metrics import ShareTest
from gradveil.training import BRIEF

FROZEN = {
    "quick-1": (8, ("init", "final"), ("fast",)),
    "standard-1": (20, ("init", "epoch-1", "final"), ("standard",)),
    "full-1": (64, ("init", "epoch-1", "final"), ("standard",)),
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_version_never_changes(name: str) -> None:
    settings = find_preset(name)
    assert settings.preset is not None
    assert (settings.images, settings.phases, settings.attacks) == FROZEN[settings.preset]
    assert settings.arms == DEFAULT_ARMS
    assert settings.knows_defence
    assert (settings.rule.epsilon, settings.rule.delta, settings.rule.gamma, settings.rule.error) == (
        1,
        0.1,
        0.05,
        0.05,
    )
    assert (settings.steps, settings.group, settings.stop_early, settings.first_look) == (None, 8, True, 8)
    assert (settings.images_per_client, settings.participants, settings.labels) == (1, 1, "known")
    assert settings.training == BRIEF


def test_quick_is_the_default() -> None:
    assert find_preset("quick") == AuditSettings(preset="quick-1")


def test_full_is_enough_to_say_that_nothing_was_found() -> None:
    settings = find_preset("full")
    cells = len(settings.arms) * len(settings.phases) * len(settings.attacks)
    test = ShareTest(settings.rule.delta, settings.rule.error / cells, settings.rule.error)
    assert test.answer(0, settings.images) == "below"


def test_changes_are_named() -> None:
    changed = change_settings(find_preset("standard"), {"images": 4, "steps": 7, "seed": 1, "phases": ("init",)})
    assert changed.preset == "standard-1 with another images, steps, phases"
    assert change_settings(changed, {"steps": 8, "labels": "hidden"}).preset == (
        "standard-1 with another images, steps, phases, labels"
    )
    assert change_settings(find_preset("quick"), {"images": 8, "seed": 1}).preset == "quick-1"
    assert change_settings(AuditSettings(), {"images": 3}).preset is None


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'quick'"):
        find_preset("quik")
