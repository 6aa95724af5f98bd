"""Phases: what they are called and when they are."""

import pytest

from gradveil.errors import SettingsError
from gradveil.training import parse_phase


@pytest.mark.parametrize(
    ("text", "step"), [("init", 0), ("step-1", 1), ("step-78", 78), ("epoch-1", 39), ("epoch-2", 78), ("final", 78)]
)
def test_when_a_phase_is(text: str, step: int) -> None:
    phase = parse_phase(text)
    assert str(phase) == text
    assert phase.step(steps_per_epoch=39, epochs=2) == step


@pytest.mark.parametrize(
    "text", ["", "end", "step", "step-", "step-0", "step-01", "epoch--1", "epoch-1.5", "Final", "init "]
)
def test_what_is_no_phase(text: str) -> None:
    with pytest.raises(SettingsError, match="choose init, step-N, epoch-N or final"):
        parse_phase(text)


@pytest.mark.parametrize(("text", "allowed"), [("step-79", "step-1 to step-78"), ("epoch-3", "epoch-1 to epoch-2")])
def test_a_phase_after_the_end(text: str, allowed: str) -> None:
    with pytest.raises(SettingsError, match=f"choose from {allowed}"):
        parse_phase(text).step(steps_per_epoch=39, epochs=2)
