"""The attacker who knows the policies, and the one who sees the same image several times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil import data
from gradveil.attacks import ATTACKS, Attack, Ensemble, GradientMatching, Sighting, attack_together, matching_loss
from gradveil.attacks.base import Progress
from gradveil.client import local_update
from gradveil.data import DataSet
from gradveil.errors import KnowledgeError
from gradveil.metrics import psnr
from gradveil.models import build
from gradveil.rng import generator
from gradveil.transforms import parse_policy
from gradveil.types import Batch, Reconstruction, Task, Update

POLICY = parse_policy("43")  # translateY up or down: two draws


@dataclass(frozen=True, eq=False)
class Given(Attack):
    """Answer with the same images whatever was released."""

    images: Tensor
    labels: Tensor

    @property
    def needs(self) -> tuple[str, ...]:
        return ("nothing",)

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        """Take part always."""

    def attack_many(
        self,
        task: Task,  # noqa: ARG002
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],  # noqa: ARG002
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        if progress is not None:
            progress(1, 1)
        return [Reconstruction(self.images, self.labels, 0.0)] * len(updates)


@cache
def sample() -> DataSet:
    return data.load("fashion-mnist-sample")


def make_task(known: tuple[str, ...] = (f"policy:{POLICY}",)) -> Task:
    images = sample()
    model = build("lenet-relu", images.shape, images.classes, images.mean, images.std, generator(0, "model")).eval()
    public = Batch(images.train.images[:200], images.train.labels[:200])
    return Task(model, F.cross_entropy, images.shape, images.classes, images.mean, images.std, known, public)


def observe(task: Task, draw: int) -> tuple[Batch, Update]:
    """Release the gradient of the first image under one draw; give what was fed as well."""
    fed = POLICY.apply(sample().test.images[:1], POLICY.draws()[draw])
    batch = Batch(fed, sample().test.labels[:1])
    return batch, local_update(task.model, task.loss, batch)


def policy_aware(steps: int) -> GradientMatching:
    return replace(cast(GradientMatching, ATTACKS["policy-aware"]), steps=steps, prune=(0.5,))


@pytest.mark.parametrize("draw", [0, 1])
def test_finds_the_draw_and_puts_the_image_back_in_its_place(draw: int) -> None:
    task = make_task()
    batch, update = observe(task, draw)
    found = policy_aware(120)(task, update, generator(0))
    assert found.fed is not None
    original = sample().test.images[:1] / 255
    assert float(psnr(found.fed, batch.pixels())) > 20
    assert float(psnr(found.images, original)) > float(psnr(found.fed, original)) + 3
    assert matching_loss(task, update, found.fed, found.labels) < 0.02


def test_two_sightings_tell_more_than_one() -> None:
    task = make_task()
    sightings = [Sighting(task, observe(task, draw)[1]) for draw in (0, 1)]
    original = sample().test.images[:1] / 255
    alone = policy_aware(80)(task, sightings[0].update, generator(0))
    both = attack_together(policy_aware(80), sightings, generator(0))
    assert float(psnr(both.images, original)) > float(psnr(alone.images, original))
    with pytest.raises(KnowledgeError, match="at least one"):
        attack_together(policy_aware(2), [], generator(0))


def test_an_ensemble_gives_the_original_and_what_was_fed() -> None:
    task = make_task()
    batch, update = observe(task, 0)
    plain = replace(cast(GradientMatching, ATTACKS["fast"]), steps=120)
    found = Ensemble({"plain": plain, "through": policy_aware(60)})(task, update, generator(0))
    assert found.fed is not None
    original = sample().test.images[:1] / 255
    assert float(psnr(found.fed, batch.pixels())) > 20
    assert float(psnr(found.images, original)) > float(psnr(found.fed, original))


def test_an_exact_match_ends_an_ensemble_but_for_those_who_look_through_a_policy() -> None:
    task = make_task()
    batch, update = observe(task, 0)
    exact = Given(batch.pixels(), batch.labels)
    members = {"exact": exact, "plain": ATTACKS["fast"], "through": policy_aware(60)}
    seen: list[tuple[int, int]] = []
    (found,) = Ensemble(members).attack_many(task, [update], [generator(0)], lambda *at: seen.append(at))
    assert found.fed is not None
    assert torch.equal(found.fed, batch.pixels())
    assert found.history[-1][0] == 60
    assert seen[-1] == (3000, 3000)
    assert (2000, 3000) in seen, "the member that was not needed is reported as done at once"
    assert sum(1000 < done < 2000 for done, _ in seen) == 0


def test_an_ensemble_leaves_out_who_cannot_take_part_and_keeps_the_best() -> None:
    task = replace(make_task(()), public=None)
    _, update = observe(task, 0)
    short, long = (replace(cast(GradientMatching, ATTACKS["fast"]), steps=steps) for steps in (2, 60))
    found = Ensemble({"analytic": ATTACKS["analytic"], "short": short, "long": long})(task, update, generator(0))
    assert found.history[-1][0] == 60
    assert found.matching_loss == pytest.approx(matching_loss(task, update, found.images, found.labels), rel=1e-3)
    with pytest.raises(KnowledgeError, match="none of"):
        Ensemble({"analytic": ATTACKS["analytic"]})(task, update, generator(0))
    assert torch.equal(update.tensors["head.bias"], observe(task, 0)[1].tensors["head.bias"])
