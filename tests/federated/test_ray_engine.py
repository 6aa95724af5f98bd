"""Flower's simulation: a client that fails on Ray is dropped too."""

from pathlib import Path

import pytest

from gradveil.federated import ParticipantApp
from gradveil.federated.coordinator import Coordinator, Recording
from gradveil.federated.outcomes import TooFewRepliesError
from gradveil.federated.ray_engine import run_on_ray
from tests.federated import scenes
from tests.federated.scenes import make_participants


@pytest.mark.slow
def test_an_actor_that_dies_is_dropped_and_too_few_replies_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flower's own strategy goes on to the end with exit code 0 in this case."""
    coordinator = Coordinator(make_participants(clients=2, least_valid=2, timeout=40.0), tmp_path, Recording())
    monkeypatch.setattr(
        coordinator,
        "make_app",
        lambda shared: scenes.Misbehaving(ParticipantApp(shared), 1, scenes.kill_process),
    )
    with pytest.raises(TooFewRepliesError, match="round 1 stopped: 1 of 2"):
        run_on_ray(coordinator, 2)
    assert [line["valid"] for line in coordinator.journal.read()] == [1]
