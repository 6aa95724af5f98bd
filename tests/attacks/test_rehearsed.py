"""Choosing by what members did on images of the attacker's own."""

import math
from dataclasses import replace

import pytest
import torch

from gradveil.attacks import Analytic, Ensemble, LowestLoss, Noise, Rehearsed
from gradveil.attacks import rehearsed as module
from gradveil.attacks.choices import RunMembers
from gradveil.attacks.forecasts import PICTURE, Criterion, Forecast
from gradveil.attacks.rehearsed import Experience
from gradveil.errors import SettingsError
from gradveil.rng import generator
from gradveil.types import Task, Update
from tests.attacks.scenes import make_task, recipe, release, sample_task, take, update_of
from tests.attacks.test_forecasts import result

EXPERIENCE = Experience(
    Criterion(Forecast({"plain": 12.0, "near": 14.0}, {"plain": 0.0, "near": 0.0}, 0.0), True, 2.0),
    Criterion(Forecast({"plain": 15.0, "near": 14.0}, {"plain": 0.0, "near": 0.0}, 0.0), True, 1.0),
)


def test_an_exact_match_is_taken_whatever_was_learnt() -> None:
    own = [result("plain", 1e-8, 0.1), result("near", 0.8, 0.9)]
    assert float(EXPERIENCE.choose(make_task(), own).images[0, 0, 0, 0]) == pytest.approx(0.1)
    far = [result("plain", 1e-3, 0.1), result("near", 0.8, 0.9)]
    assert float(EXPERIENCE.choose(make_task(), far).images[0, 0, 0, 0]) == pytest.approx(0.9)


def test_each_target_has_its_own_criterion() -> None:
    fed = Criterion(Forecast({"plain": 15.0, "near": 14.0}, {"plain": 0.0, "near": 0.0}, 0.0), True, 1.0)
    original = Criterion(Forecast({PICTURE: 12.0, "near": 14.0}, {PICTURE: 0.0, "near": 0.0}, 0.0), True, 2.0)
    own = [result("plain", 1e-3, 0.1), result("near", 0.8, 0.9, inverts=True)]
    chosen = Experience(fed, original).choose(make_task(known=("crop-flip",)), own)
    assert chosen.transformed is not None
    assert float(chosen.transformed[0, 0, 0, 0]) == pytest.approx(0.1)
    assert float(chosen.images[0, 0, 0, 0]) == pytest.approx(0.9)
    assert Experience(fed, original).choose(make_task(), own).transformed is None


def test_if_all_failed_the_reasons_are_passed_on() -> None:
    own = [result("plain", math.inf), result("near", math.inf)]
    chosen = EXPERIENCE.choose(make_task(known=("crop-flip",)), own)
    assert chosen.status == "failed"
    assert chosen.reason.startswith("every member failed: plain")


def test_rehearsed_images_are_none_of_the_members() -> None:
    task = sample_task()
    choice = Rehearsed(images=7)
    rehearsed, others = choice.divide(task)
    shown = choice.task_for_members(task, [update_of(task, take([0]))]).public
    assert shown is not None
    assert (len(rehearsed), len(shown)) == (7, 193)
    assert torch.equal(shown.images, others.images)
    pairs = (rehearsed.images.flatten(1)[:, None] == others.images.flatten(1)[None]).all(2)
    assert not pairs.any()


def test_what_cannot_be_rehearsed_is_chosen_by_the_lowest_loss() -> None:
    task, choice = make_task(), Rehearsed(images=6)
    assert choice.rehearses(task, [release(task)]) == 6
    for other, update in (
        (task, release(task, count=2)),
        (replace(task, public=None), release(task)),
        (replace(task, participants=2), release(task)),
        (make_task(known=("mixup",)), release(task)),
    ):
        assert choice.rehearses(other, [update]) == 0
        assert choice.task_for_members(other, [update]) is other
    members = {"fast": recipe("fast").with_steps(4), "noise": recipe("noise").with_steps(4)}
    batch = release(task, count=2)
    ours, plain = (Ensemble(members, one)(task, batch, generator(0)) for one in (choice, LowestLoss()))
    assert torch.equal(ours.images, plain.images)
    with pytest.raises(SettingsError, match="3 or more"):
        Rehearsed(images=2)


def test_rehearses_once_for_a_task_and_not_at_all_if_everything_is_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    real = module.rehearse

    def count(choice: Rehearsed, task: Task, update: Update, run: RunMembers) -> Experience:
        done.append(1)
        return real(choice, task, update, run)

    monkeypatch.setattr(module, "rehearse", count)
    monkeypatch.setattr(module, "cache", {})
    task = make_task()
    ensemble = Ensemble({"fast": recipe("fast").with_steps(3), "noise": recipe("noise").with_steps(3)}, Rehearsed(6))
    seen: list[float] = []
    for image in (0, 1):
        ensemble.attack_many(task, [release(task, image)], [generator(image)], lambda at, of: seen.append(at / of))
    assert len(done) == 1
    assert seen[-1] == 1
    assert max(seen[: len(seen) // 2 - 1]) < 0.2, "six of seven updates are the attacker's own"
    linear = make_task("mlp")
    Ensemble({"analytic": Analytic()}, Rehearsed())(linear, release(linear), generator(0))
    assert len(done) == 1


@pytest.mark.slow
def test_a_member_that_matches_and_shows_nothing_is_found_out() -> None:
    """A search from strong noise, with hardly a prior, matches better than the mean of the class, which is nearer."""
    task = sample_task("convnet-16")
    loud = replace(
        recipe("noise").with_steps(25),
        start=Noise(1.0),
        priors=replace(recipe("noise").priors, total_variation=0.01, last_variation=0.01),
    )
    members = {"loud": loud, "mean": recipe("class-mean").with_steps(1)}
    updates = [update_of(task, take([image])) for image in range(20, 26)]
    truths = take(range(20, 26)).pixels()
    errors = []
    for choice in (LowestLoss(), Rehearsed()):
        results = Ensemble(members, choice).attack_many(task, updates, [generator(0, at) for at in range(6)])
        errors.append((torch.cat([one.images for one in results]) - truths).square().mean().log10() * -10)
    assert errors[1] > errors[0] + 0.5
