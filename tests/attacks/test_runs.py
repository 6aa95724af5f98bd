"""The loop: pruning, stopping, scales and what is noted."""

from dataclasses import replace

import torch

from gradveil.attacks import GradientMatching, Restarts
from gradveil.attacks.runs import Runs
from gradveil.rng import generator
from tests.attacks.scenes import make_task, recipe, release

TASK = make_task()


def prepare(attack: GradientMatching, targets: int = 1, runs: int = 1) -> Runs:
    sources = [[generator(target, run) for run in range(runs)] for target in range(targets)]
    return attack.prepare(TASK, [release(TASK, target) for target in range(targets)], sources)


def test_the_worse_half_of_every_targets_runs_is_dropped() -> None:
    attack = replace(recipe("adam-cosine").with_steps(10), restarts=Restarts(4, prune=(0.2, 0.5)))
    runs = prepare(attack, 2, 4)
    alive = [len(runs.rows) for _ in runs.run()]
    assert alive == [8, 8, 4, 4, 4, 2, 2, 2, 2, 2]
    results = runs.results()
    assert len(results) == 8
    for target in (0, 4):
        histories = [dict(one.history) for one in results[target : target + 4]]
        best = sorted(range(4), key=lambda run: histories[run][2])[:2]
        assert sorted(best) == [run for run in range(4) if max(histories[run]) > 2]
        assert sum(max(one) == 10 for one in histories) == 1


def test_runs_that_have_matched_stop() -> None:
    attack = recipe("adam-cosine").with_steps(60)
    runs = prepare(replace(attack, descent=replace(attack.descent, tolerance=0.9)), 2)
    assert len(list(runs.run())) < 60
    for one in runs.results():
        assert one.history[-1][1] <= 0.9 * one.history[0][1]
        assert one.status == "ok"


def test_a_run_is_noted_about_thirty_times_and_at_the_end() -> None:
    runs = prepare(recipe("adam-cosine").with_steps(90))
    assert list(runs.run()) == list(range(1, 91))
    (result,) = runs.results()
    assert [step for step, _ in result.history] == [*range(0, 90, 3), 90]
    assert [step for step, _ in result.similarities] == [step for step, _ in result.history]
    assert result.pictures[0][0] == 0
    assert result.matching_loss == result.history[-1][1]
    assert result.matching_loss < result.history[0][1]


def test_scales_take_turns() -> None:
    runs = prepare(recipe("multi-scale").with_steps(6))
    sizes = [runs.points.size[-1] for _ in runs.run()]
    assert sizes == [3, 3, 6, 6, 12, 12]
    assert runs.results()[0].images.shape == (1, *TASK.shape)


def test_pixels_stay_in_their_box_if_asked() -> None:
    attack = recipe("adam-cosine").with_steps(3)
    reached = []
    for box in (True, False):
        runs = prepare(replace(attack, descent=replace(attack.descent, box=box, learning_rate=5.0)))
        reached.append([float(runs.points.pixels().detach().max()) for _ in runs.run()][-1])
    assert reached[0] <= 1 + 1e-5 < reached[1]


def test_a_lost_run_ends_and_leaves_the_others_alone() -> None:
    updates = [release(TASK, image) for image in (0, 1)]
    broken = replace(updates[0], tensors={name: torch.nan * value for name, value in updates[0].tensors.items()})
    attack = recipe("adam-cosine").with_steps(6)
    patient = replace(attack, descent=replace(attack.descent, tolerance=1e-9))
    runs = patient.prepare(TASK, [broken, updates[1]], [[generator(0)], [generator(1)]])
    assert list(runs.run()) == list(range(1, 7))
    lost, sound = runs.results()
    assert (lost.status, sound.status) == ("failed", "ok")
    assert lost.history[-1][0] == 1
    assert sound.history[-1][0] == 6
