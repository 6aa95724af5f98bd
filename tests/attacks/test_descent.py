"""How images are moved."""

import pytest

from gradveil.attacks import Descent, constant, cosine_decay, three_drops
from gradveil.errors import SettingsError


def test_schedules_end_where_they_should() -> None:
    drops = Descent(steps=80)
    assert drops.schedule is three_drops
    assert [drops.rate(step) for step in (0, 30, 50, 70)] == pytest.approx([0.1, 0.01, 0.001, 0.0001])
    assert Descent(schedule=constant, learning_rate=0.3).rate(4000) == 0.3
    falling = Descent(schedule=cosine_decay, learning_rate=0.3, steps=10)
    assert [falling.rate(step) for step in (0, 5, 10)] == pytest.approx([0.3, 0.15, 0.0])


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
