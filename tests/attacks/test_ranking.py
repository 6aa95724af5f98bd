"""One measure for the results of different attacks."""

import math
from dataclasses import replace

import pytest
import torch

from gradveil.attacks import matching_loss
from gradveil.attacks.ranking import Comparison, transformed_of
from gradveil.defences import parse_defences
from gradveil.rng import generator
from gradveil.types import LocalTraining, Reconstruction
from tests.attacks.scenes import make_task, pictures, recipe, sample_task, take, update_of


@pytest.mark.parametrize(
    "local",
    [
        LocalTraining(),
        LocalTraining(mode="train"),
        LocalTraining(steps=3, batch_size=2, momentum=0.9),
        LocalTraining(epochs=2, batch_size=2, mode="train"),
    ],
)
def test_the_truth_matches_what_was_released(local: LocalTraining) -> None:
    task, batch = make_task("convnet-2"), pictures(count=4)
    update = update_of(task, batch, local)
    assert matching_loss(task, update, batch.pixels(), batch.labels) == pytest.approx(0, abs=1e-5)
    assert matching_loss(task, update, 1 - batch.pixels(), batch.labels) > 3e-5


def test_every_kind_of_local_training_is_simulated_once() -> None:
    task = make_task()
    comparison, update = Comparison(task), update_of(task, pictures(count=1))
    one = comparison.simulation(update)
    assert comparison.simulation(replace(update, images=2)) is one
    assert comparison.simulation(replace(update, local=LocalTraining(mode="train"))) is not one


def test_an_update_that_shows_its_draw_has_a_simulation_of_its_own() -> None:
    task = make_task()
    known = parse_defences(["precode:width=4"])
    told = replace(task, model=known[0].model(task.model, generator(0)), known_defences=known)
    comparison, update = Comparison(told), update_of(told, pictures(count=1))
    assert comparison.simulation(update) is not comparison.simulation(update)


def test_a_failed_result_is_infinitely_far() -> None:
    task, batch = make_task(), pictures(count=1)
    update, comparison = update_of(task, batch), Comparison(task)
    truth = Reconstruction(batch.pixels(), batch.labels, 0.0)
    assert comparison.loss_of(update, truth) == pytest.approx(0, abs=1e-5)
    assert comparison.loss_of(update, replace(truth, status="failed")) == math.inf
    assert comparison.loss_of(update, replace(truth, images=torch.nan * truth.images)) == math.inf


def test_what_the_model_was_fed_is_measured_if_it_is_told_apart() -> None:
    image = torch.zeros(1, 1, 2, 2)
    result = Reconstruction(image, torch.zeros(1), 0.0)
    assert transformed_of(result) is image
    assert float(transformed_of(replace(result, transformed=image + 1)).mean()) == 1


def test_without_known_noise_the_loss_alone_ranks() -> None:
    task, batch = sample_task(known=["prune:50"]), take([0])
    update = update_of(task, batch, defences=["prune:50"])
    comparison, truth = Comparison(task), Reconstruction(batch.pixels(), batch.labels, 0.0)
    loss = comparison.loss_of(update, truth)
    assert comparison.rank(update, truth, loss) == loss


def test_the_truth_ranks_before_what_took_the_noise_for_a_picture() -> None:
    defence = "gaussian:0.05"
    task, batch = sample_task(known=["gaussian:0.01"]), take([0])
    update = update_of(task, batch, defences=[defence])
    attack = recipe("noise").with_steps(150)
    blind = replace(attack, priors=replace(attack.priors, total_variation=0.1, last_variation=0.01))
    results = Reconstruction(batch.pixels(), batch.labels, 0.0), blind(task, update, generator(0))
    told = Comparison(replace(task, known_defences=parse_defences([defence])))
    losses = [told.loss_of(update, one) for one in results]
    assert losses[1] < losses[0]
    ranks = [told.rank(update, one, loss) for one, loss in zip(results, losses, strict=True)]
    assert ranks[0] < ranks[1]
