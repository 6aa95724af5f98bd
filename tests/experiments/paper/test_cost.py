from dataclasses import replace

import pytest

from gradveil.experiments.paper import cost
from gradveil.experiments.paper.cost import Speed, count_seconds, make_plan, measure_speed
from gradveil.experiments.paper.scales import CIFAR, SAMPLE, SMOKE
from gradveil.experiments.paper.units import AttackUnit, ScoreUnit, SearchUnit, TrainUnit
from gradveil.training import FAST

MODEL = TrainUnit(CIFAR, "mlp", "none", replace(FAST, epochs=2, fraction=0.5))


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "measure_speed", lambda *_: Speed(0.001, 0.01))


@pytest.mark.usefixtures("steady")
def test_the_cost_of_units() -> None:
    assert count_seconds(MODEL) == pytest.approx(50_000 * 0.001)
    assert count_seconds(AttackUnit(MODEL, "none", "adam-cosine", 0, 6, steps=100)) == pytest.approx(6 * 100 * 0.01)
    assert count_seconds(AttackUnit(MODEL, "none", "fast", 0, 6, steps=100, epochs=3)) == pytest.approx(18.0)
    assert count_seconds(ScoreUnit(MODEL, "3", 100)) == pytest.approx(100 * 20 * 0.001)
    assert count_seconds(AttackUnit(MODEL, "none", "learned", 0, 100)) == pytest.approx(5000 * 4 * 0.001)
    assert count_seconds(SearchUnit(MODEL, 1500, 100, 10)) > 0


@pytest.mark.usefixtures("steady")
def test_a_plan_counts_what_is_left() -> None:
    attack = AttackUnit(MODEL, "none", "adam-cosine", 0, 6, steps=100)
    plan = make_plan("table", [MODEL, attack, replace(attack, first=6)], [MODEL, attack])
    assert (plan.trainings, plan.attacks, plan.scores, plan.done) == (1, 1, 0, 1)
    assert plan.hours == pytest.approx((50 + 6) / 3600)


def test_speed_is_measured() -> None:
    speed = measure_speed(SMOKE.networks["b"].model, SAMPLE)
    assert speed.gradient > 0
    assert speed.step > 0
