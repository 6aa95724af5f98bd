"""What a search minimises, and its slope."""

import pytest
import torch

from gradveil.attacks import Knowledge, Priors, cosine
from gradveil.attacks.objective import Objective
from gradveil.attacks.observation import observe
from gradveil.attacks.points import Points
from gradveil.attacks.priors import disagreement, energy, total_variation
from gradveil.attacks.statistics import StatisticsGap, known_statistics
from gradveil.rng import generator
from gradveil.types import Task
from tests.attacks.scenes import make_task, pictures, release

TARGETS = torch.tensor([0, 0, 1])
"""Three runs, two of them of the same update."""


def make_points(task: Task) -> Points:
    images = 0.3 * torch.randn(3, 1, *task.shape, generator=generator(0))
    return Points(task, images, pictures().labels[TARGETS][:, None])


def make_objective(
    task: Task,
    priors: Priors,
    statistics: StatisticsGap | None = None,
    rounds: int = 1,
    knowledge: Knowledge = Knowledge(),  # noqa: B008
) -> Objective:
    updates = [release(task, image) for image in (0, 1)]
    observations = [observe(task, updates, TARGETS)] * rounds
    return Objective(cosine, priors, knowledge, observations, TARGETS, statistics)


def slope_of(objective: Objective, points: Points) -> torch.Tensor:
    return objective.slope(points, objective.evaluate(points), 0, 10)


def test_the_slope_is_that_of_distance_and_priors() -> None:
    task = make_task("convnet-2")
    points, update = make_points(task), release(task)
    gap = StatisticsGap(task, update.local, known_statistics(task.model, update))
    priors = Priors(total_variation=0.3, energy=0.2, consistency=0.4, batch_norm=0.1)
    objective = make_objective(task, priors, gap)
    slope = slope_of(objective, points)
    # The same, written plainly: one number for each run, differentiated at once.
    observation, images = objective.observations[0], points.images()
    distance, _ = cosine(observation.candidate(points.pixels(), points.labels()), observation.released, {})
    value = distance + 0.3 * total_variation(images) + 0.2 * energy(images)
    value = value + 0.4 * disagreement(images, objective.targets) + 0.1 * gap(points.pixels())
    (expected,) = torch.autograd.grad(value.sum(), points.flat)
    torch.testing.assert_close(slope, expected, rtol=1e-3, atol=1e-6)


def test_a_relative_prior_is_as_steep_as_the_distance() -> None:
    task = make_task()
    points = make_points(task)
    distance, one, two = (
        slope_of(make_objective(task, Priors(total_variation=weight, relative=True)), points)
        for weight in (0.0, 1.0, 2.0)
    )
    torch.testing.assert_close((one - distance).abs().mean(1), distance.abs().mean(1), rtol=1e-3, atol=0)
    torch.testing.assert_close(two - distance, 2 * (one - distance), rtol=1e-3, atol=1e-6)


def test_several_observations_are_averaged() -> None:
    task = make_task()
    points = make_points(task)
    once, twice = (make_objective(task, Priors(), rounds=rounds) for rounds in (1, 2))
    assert torch.equal(once.evaluate(points).distances, twice.evaluate(points).distances)
    torch.testing.assert_close(slope_of(once, points), slope_of(twice, points))


def test_known_noise_sets_the_weight_of_the_variation() -> None:
    weights = []
    for strength in ("0.01", "0.02"):
        task = make_task(known=[f"gaussian:{strength}"])
        points = make_points(task)
        objective = make_objective(task, Priors(), knowledge=Knowledge(noise=True))
        weights.append(objective.variation_weight(points, objective.evaluate(points), 0, 10))
    weak, strong = weights
    assert isinstance(weak, torch.Tensor)
    torch.testing.assert_close(strong, 4 * weak)


def test_several_noisy_updates_weigh_more_against_the_variation() -> None:
    task = make_task(known=["gaussian:0.001"])
    points = make_points(task)
    objective = make_objective(task, Priors(), knowledge=Knowledge(noise=True))
    alone = objective.variation_weight(points, objective.evaluate(points), 0, 10)
    objective.observations = objective.observations * 4
    four = objective.variation_weight(points, objective.evaluate(points), 0, 10)
    torch.testing.assert_close(torch.as_tensor(alone), 4 * torch.as_tensor(four))


def test_runs_are_put_back_to_where_the_second_stage_began() -> None:
    task = make_task()
    points, objective = make_points(task), make_objective(task, Priors())
    objective.begin_stage(points)
    began = points.flat.detach().clone()
    points.move(torch.randn(points.flat.shape, generator=generator(5)) * 3)
    objective.roll_back(points)
    assert objective.stage is not None
    assert not objective.stage.active.any()
    assert torch.equal(points.flat, began)


def test_keeping_runs_keeps_their_distances() -> None:
    task = make_task()
    points, objective = make_points(task), make_objective(task, Priors())
    objective.begin_stage(points)
    before, rows = objective.evaluate(points).distances, torch.tensor([2, 0])
    objective.keep(rows)
    points.keep(rows)
    assert objective.targets.tolist() == [1, 0]
    assert objective.evaluate(points).distances.tolist() == pytest.approx(before[rows].tolist(), rel=1e-4)
    alike = objective.similarities(objective.evaluate(points))
    assert all(values.shape == (2,) for values in alike.values())


def test_everything_stays_on_the_device_of_the_update() -> None:
    task = make_task()
    updates = [release(task, image).to("meta") for image in (0, 1)]
    points = make_points(task)
    there = Points(task, points.images().detach().to("meta"), points.labels().to("meta"))
    priors = Priors(energy=0.1, consistency=0.1, relative=True)
    observations = [observe(task.to("meta"), updates, TARGETS)]
    objective = Objective(cosine, priors, Knowledge(policy=True), observations, TARGETS)
    objective.begin_stage(there)
    slope = slope_of(objective, there)
    assert slope.is_meta
    assert slope.shape == there.flat.shape
    objective.keep(torch.tensor([2, 0]))
    there.keep(torch.tensor([2, 0]))
    assert objective.evaluate(there).distances.is_meta
