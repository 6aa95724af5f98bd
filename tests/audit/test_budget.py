"""Seconds as gradients."""

from dataclasses import replace

import pytest

from gradveil.attacks import Ensemble, GradientMatching
from gradveil.audit import Audit, AuditSettings
from gradveil.audit.budget import count_gradients
from gradveil.types import ONE_GRADIENT, LocalTraining
from tests.attacks.scenes import make_task, pictures


def test_more_seconds_are_more_gradients_and_more_images_fewer() -> None:
    task, one = make_task(), pictures().take(slice(0, 1))
    short, long = (count_gradients(seconds, task, ONE_GRADIENT, [one] * 2, 1) for seconds in (0.5, 50.0))
    assert long > 10 * short > 0
    assert count_gradients(1e-9, task, ONE_GRADIENT, [one], 1) == 1


def test_weight_changes_are_measured_as_such() -> None:
    task, two = make_task(), pictures().take(slice(0, 2))
    assert count_gradients(5.0, task, LocalTraining(steps=2, batch_size=1), [two], 1) >= 1


def test_it_is_measured_once_and_then_stands_in_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = AuditSettings(arms=("none",), phases=("init",), attacks=("standard", "fast"), images=2, budget=3.0)
    monkeypatch.setattr("gradveil.audit.audit.count_gradients", lambda *_: 740)
    audit = Audit(settings)
    assert (audit.settings.budget, audit.settings.gradients) == (3.0, 740)
    fast, standard = audit.attacks["fast"], audit.attacks["standard"]
    assert isinstance(fast, GradientMatching)
    assert fast.descent.steps == 740
    assert isinstance(standard, Ensemble)
    assert 700 <= standard.gradients <= 740

    def refuse(*_: object) -> int:
        raise AssertionError("it was measured again")

    monkeypatch.setattr("gradveil.audit.audit.count_gradients", refuse)
    again = AuditSettings.from_record(audit.settings.to_record())
    assert Audit(again).attacks == audit.attacks
    with pytest.raises(AssertionError):
        Audit(replace(again, gradients=None))
