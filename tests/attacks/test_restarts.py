"""Several runs for one target."""

import pytest
import torch

from gradveil.attacks import Restarts
from gradveil.attacks.restarts import best_restart
from gradveil.errors import SettingsError
from gradveil.types import Reconstruction


def test_the_loss_alone_chooses_and_failures_lose() -> None:
    image = torch.zeros(1, 1, 2, 2)
    results = [
        Reconstruction(image, torch.zeros(1), float("nan"), "failed"),
        Reconstruction(image, torch.zeros(1), 0.5),
        Reconstruction(image, torch.zeros(1), 0.2),
    ]
    assert best_restart(results) is results[2]
    assert best_restart(results[:1]) is results[0]


def test_if_every_restart_failed_the_result_says_so() -> None:
    image = torch.zeros(1, 1, 2, 2)
    failed = [Reconstruction(image, torch.zeros(1), float("nan"), "failed", reason=text) for text in ("one", "two")]
    assert best_restart(failed).reason == "each of 2 restarts failed; the first one: one"
    assert best_restart(failed[1:]).reason == "two"


def test_pruned_runs_count_for_the_steps_that_they_took() -> None:
    halved = Restarts(4, prune=(0.25, 0.5))
    assert halved.mean_count() == pytest.approx(4 * 0.25 + 2 * 0.25 + 1 * 0.5)
    assert halved.prune_steps(10) == {3, 5}


@pytest.mark.parametrize("change", [{"count": 0}, {"together": 0}, {"prune": (1.5,)}])
def test_settings_out_of_range_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(SettingsError):
        Restarts(**change)  # type: ignore[arg-type]
