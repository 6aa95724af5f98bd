"""How images are moved."""

import pytest
import torch

from gradveil.attacks import (
    Descent,
    constant,
    cosine_decay,
    hard_sign,
    soft_sign,
    three_drops,
    unsigned,
    warm_cosine,
)
from gradveil.errors import SettingsError


def test_schedules_end_where_they_should() -> None:
    drops = Descent(steps=80)
    assert drops.schedule is three_drops
    assert [drops.rate(step) for step in (0, 30, 50, 70)] == pytest.approx([0.1, 0.01, 0.001, 0.0001])
    assert Descent(schedule=constant, learning_rate=0.3).rate(4000) == 0.3
    falling = Descent(schedule=cosine_decay, learning_rate=0.3, steps=10)
    assert [falling.rate(step) for step in (0, 5, 10)] == pytest.approx([0.3, 0.15, 0.0])


def test_a_warm_up_comes_before_the_cosine() -> None:
    warm = Descent(schedule=warm_cosine, learning_rate=0.1, steps=1000)
    assert [warm.rate(step) for step in (0, 25, 50)] == pytest.approx([0.0, 0.05, 0.1])
    assert warm.rate(51) == pytest.approx(0.1)
    assert warm.rate(551) == pytest.approx(0.05), "half way along the cosine"
    assert 0 < warm.rate(999) < 0.001


def test_signs_keep_what_they_say() -> None:
    slopes = torch.tensor([-30.0, -0.001, 0.0, 0.001, 2.0])
    assert hard_sign(slopes, 0, 10).tolist() == [-1, -1, 0, 1, 1]
    assert torch.equal(unsigned(slopes, 0, 10), slopes)
    soft = soft_sign(slopes, 0, 10)
    torch.testing.assert_close(soft[1:4], slopes[1:4], rtol=1e-4, atol=0)
    assert soft[0] == pytest.approx(-1.0)
    torch.testing.assert_close(
        soft_sign(slopes, 9, 10)[4], torch.tensor(10 * 0.2).mul(0.1).tanh().mul(10), rtol=1e-5, atol=0
    )


def test_scales_share_the_steps() -> None:
    descent = Descent(steps=90, scales=(4, 2, 1))
    assert descent.scale_changes() == {30: 2, 60: 1}
    assert descent.full_resolution_from == pytest.approx(2 / 3)
    assert Descent().full_resolution_from == 0


@pytest.mark.parametrize(
    "change",
    [{"steps": 0}, {"learning_rate": 0.0}, {"scales": (1, 2)}, {"scales": ()}, {"tolerance": -1.0}],
)
def test_settings_out_of_range_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        Descent(**change)  # type: ignore[arg-type]
