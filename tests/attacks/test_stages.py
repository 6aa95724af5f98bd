"""The second stage: it goes on while it helps, and is rolled back where it does not."""

from dataclasses import replace

import pytest
import torch

from gradveil.attacks import SecondStage
from gradveil.attacks.stages import StageStart
from gradveil.errors import SettingsError
from gradveil.rng import generator
from gradveil.types import Batch
from tests.attacks.scenes import plain_task, recipe, small_model, update_of


def attack_noisy(noise: float) -> tuple[list[bool], list[float]]:
    """Attack one image whose gradient has noise in it; return which runs stayed in the stage, and their losses."""
    task = plain_task(small_model())
    smooth = torch.linspace(0, 1, 12).view(1, 1, 12, 1).expand(1, 1, 12, 12).contiguous()
    update = update_of(task, Batch(smooth, torch.tensor([2])))
    tensors = {
        name: tensor + noise * torch.randn(tensor.shape, generator=generator(3, name))
        for name, tensor in update.tensors.items()
    }
    runs = (
        recipe("fast").with_steps(60).prepare(task, [replace(update, tensors=tensors)], [[generator(1), generator(2)]])
    )
    active: list[bool] = []
    for step in runs.run():
        if step == 59 and runs.objective.stage is not None:
            active = runs.objective.stage.active.tolist()
    return active, [one.matching_loss for one in runs.results()]


def test_the_stage_goes_on_with_an_exact_gradient_and_is_rolled_back_in_noise() -> None:
    exact, losses = attack_noisy(0.0)
    assert exact == [True, True]
    assert max(losses) < 0.01
    noisy, losses = attack_noisy(0.1)
    assert noisy == [False, False]
    assert all(loss > 0.01 for loss in losses)


def test_steps_are_counted_from_the_share() -> None:
    stage = SecondStage()
    assert stage.first_step(240) == 60
    assert stage.check_step(240) == 120
    assert SecondStage(begins_at=1.0).first_step(10) == 10


@pytest.mark.parametrize("share", [1.5, -0.1, float("nan")])
def test_shares_out_of_range_are_refused(share: float) -> None:
    with pytest.raises(SettingsError, match="share of the steps"):
        SecondStage(begins_at=share)


def test_runs_that_come_no_nearer_are_astray_and_not_finite_ones_too() -> None:
    points, reached = torch.zeros(4, 3), torch.tensor([1.0, 1.0, 1.0, 1.0])
    start = StageStart(points, reached, torch.tensor([True, True, True, False]))
    astray = start.find_astray(torch.tensor([0.5, 1.0, float("nan"), 2.0]))
    assert astray.tolist() == [False, True, True, False]
    assert start.deactivate(astray).active.tolist() == [True, False, False, False]
    assert start.keep(torch.tensor([3, 0])).active.tolist() == [False, True]
