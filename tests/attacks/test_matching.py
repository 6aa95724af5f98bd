"""Gradient matching as a combination of values."""

import pickle
from dataclasses import replace

import pytest

from gradveil.attacks import (
    ATTACKS,
    Descent,
    GradientMatching,
    Knowledge,
    LimitedMemory,
    Priors,
    Restarts,
    SecondStage,
    l2,
)
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.rng import generator
from gradveil.types import LocalTraining
from tests.attacks.scenes import make_task, recipe, release, shorten


@pytest.mark.parametrize(
    ("attack", "match"),
    [
        (lambda: GradientMatching(descent=Descent(scales=(2, 1)), second_stage=SecondStage()), "full resolution"),
        (lambda: GradientMatching(descent=Descent(LimitedMemory), second_stage=SecondStage()), "one distance"),
        (lambda: GradientMatching(l2, knowledge=Knowledge(noise=True)), "cosine"),
        (lambda: GradientMatching(priors=Priors(relative=True), knowledge=Knowledge(noise=True)), "relative"),
        (lambda: GradientMatching(second_stage=SecondStage(), knowledge=Knowledge(noise=True)), "no second stage"),
    ],
)
def test_values_that_do_not_go_together_are_refused(attack: type[GradientMatching], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        attack()


def test_values_that_go_together_are_accepted() -> None:
    late = GradientMatching(descent=Descent(scales=(2, 1)), second_stage=SecondStage(begins_at=0.5))
    assert late.second_stage is not None


def test_steps_and_budgets() -> None:
    halved = GradientMatching(restarts=Restarts(4, prune=(0.25, 0.5)))
    assert halved.with_budget(200).descent.steps == 100
    assert recipe("dlg").with_budget(400).descent.steps == 20
    assert recipe("dlg").with_budget(1).descent.steps == 1
    assert recipe("fast").with_steps(7) == replace(recipe("fast"), descent=replace(recipe("fast").descent, steps=7))
    with pytest.raises(SettingsError, match="0 steps"):
        recipe("fast").with_steps(0)


def test_the_size_of_a_group_changes_no_result() -> None:
    task = make_task()
    updates = [release(task, image) for image in range(3)]
    sources = [[generator(place) for place in range(3)] for _ in range(2)]
    attack = recipe("adam-cosine").with_steps(3)
    apart = replace(attack, restarts=Restarts(together=1))
    seen: list[tuple[int, int]] = []
    one_by_one = apart.attack_many(task, updates, sources[0], lambda *at: seen.append(at))
    together = attack.attack_many(task, updates, sources[1])
    for one, other in zip(one_by_one, together, strict=True):
        assert one.history[0][1] == pytest.approx(other.history[0][1], rel=1e-4)
    assert seen[-1] == (9, 9)


def test_updates_with_statistics_of_their_own_run_one_by_one() -> None:
    task = make_task("convnet-2")
    quiet, telling = (release(task, count=2, local=local) for local in (LocalTraining(), LocalTraining(mode="train")))
    assert recipe("bn-prior").targets_together(task, [quiet]) == 4
    assert recipe("bn-prior").targets_together(task, [telling]) == 1
    assert recipe("fast").targets_together(task, [telling]) == 16


def test_mixed_local_training_is_refused() -> None:
    task = make_task()
    updates = [release(task), release(task, local=LocalTraining(steps=2))]
    with pytest.raises(KnowledgeError, match="local training"):
        recipe("fast").attack_many(task, updates, [generator(0), generator(1)])


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_travel_to_worker_processes(name: str) -> None:
    assert pickle.loads(pickle.dumps(shorten(ATTACKS[name]))) == shorten(ATTACKS[name])
