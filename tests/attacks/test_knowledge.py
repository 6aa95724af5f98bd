"""What an attacker uses beyond the update: labels, policies and the strength of noise."""

from dataclasses import replace

import pytest
import torch

from gradveil.attacks import Ensemble, GradientMatching, Knowledge, matching_loss
from gradveil.attacks.knowledge import draw_logits
from gradveil.defences import known_deviation, parse_defences
from gradveil.errors import KnowledgeError
from gradveil.metrics import psnr
from gradveil.rng import generator
from gradveil.transforms import parse_policy
from gradveil.types import Batch, Task, Update
from tests.attacks.scenes import (
    make_task,
    pictures,
    policy_aware,
    recipe,
    release,
    sample,
    sample_task,
    take,
    update_of,
)

NOISE = "gaussian:0.01"
POLICY = parse_policy("43")  # translateY up or down: two draws
KNOWN = (f"policy:{POLICY}",)


def release_draw(task: Task, draw: int) -> tuple[Batch, Update]:
    """Release the gradient of the first image under one draw; return what was fed as well."""
    fed = POLICY.apply(sample().test.images[:1], POLICY.draws()[draw])
    batch = Batch(fed, sample().test.labels[:1])
    return batch, update_of(task, batch)


@pytest.mark.parametrize(
    ("known", "deviation"),
    [
        (("gaussian:0.5",), 0.5),
        (("laplacian:0.5",), 0.5 * 2**0.5),
        (("dpsgd:noise=3:clip=0.5",), 1.5 / 4),
        (("crop-flip", "policy:3-1-7", "gaussian:3", "gaussian:4"), 5.0),
        (("prune:90", "gaussian:2"), 2.0),
        (("gaussian:2", "prune:90"), 0.0),
        (("gaussian:2", "clip:1"), 0.0),
        (("prune:90", "dpsgd:noise=2:clip=1"), 0.0),
        (("gaussian:3", "dpsgd:noise=16:clip=1"), 5.0),
        (("prune:90",), 0.0),
        ((), 0.0),
    ],
)
def test_the_strength_is_read_off_the_known_defences(known: tuple[str, ...], deviation: float) -> None:
    assert known_deviation(parse_defences(list(known)), 4) == pytest.approx(deviation)


def test_the_noise_of_many_participants_averages_out() -> None:
    for known, deviation in ((("gaussian:0.5",), 0.25), (("dpsgd:noise=3:clip=0.5",), 0.75)):
        assert known_deviation(parse_defences(list(known)), 4, participants=4) == pytest.approx(deviation)


@pytest.mark.parametrize("defence", ["gaussian:0.02", "laplacian:0.02", "dpsgd:noise=0.02:clip=100"])
def test_the_noise_is_as_strong_as_is_said(defence: str) -> None:
    task = make_task(known=(defence,))
    noised, plain = (
        torch.cat(
            [tensor.flatten() for tensor in update_of(task, pictures(count=1), defences=[which]).tensors.values()]
        )
        for which in (defence, "gaussian:0")
    )
    assert float((noised - plain).std()) == pytest.approx(known_deviation(task.known_defences, 1), rel=0.02)


@pytest.mark.parametrize("draw", [0, 1])
def test_finds_the_draw_and_puts_the_image_back_in_its_place(draw: int) -> None:
    task = sample_task(known=KNOWN)
    batch, update = release_draw(task, draw)
    result = policy_aware(120)(task, update, generator(0))
    assert result.transformed is not None
    original = sample().test.images[:1] / 255
    assert float(psnr(result.transformed, batch.pixels())) > 20
    assert float(psnr(result.images, original)) > float(psnr(result.transformed, original)) + 3
    assert matching_loss(task, update, result.transformed, result.labels) < 0.02


def test_knowing_the_noise_helps() -> None:
    task = sample_task(known=[NOISE])
    aware, blind = recipe("noise-aware").with_steps(150), nearest(150)
    gained = []
    for image in range(4):
        fed = take([image]).pixels()
        update = update_of(task, take([image]), defences=[NOISE], seed=image)
        both = Ensemble({"blind": blind, "aware": aware})(task, update, generator(0))
        scores = [float(psnr(one(task, update, generator(0)).images, fed)) for one in (aware, blind)]
        gained.append(scores[0] - scores[1])
        assert float(psnr(both.images, fed)) > scores[1]
    assert min(gained) > 1


def nearest(steps: int) -> GradientMatching:
    """Look for the nearest gradient with a weak prior."""
    noise = recipe("noise").with_steps(steps)
    return replace(noise, priors=replace(noise.priors, total_variation=0.1, last_variation=0.01))


def test_draws_are_tried_in_turn_for_one_image_and_at_random_for_a_batch() -> None:
    task = make_task(known=KNOWN)
    knowledge = Knowledge(policy=True)
    assert knowledge.count_draws(task) == 2
    assert Knowledge().count_draws(task) == 1
    assert Knowledge().assume_draws(task, 1, [generator(0)]) is None
    sources = [generator(place) for place in range(4)]
    single, batch = knowledge.assume_draws(task, 1, sources), knowledge.assume_draws(task, 3, sources)
    assert single is not None
    assert batch is not None
    images = torch.rand(1, 1, 1, 12, 12, generator=generator(0)).expand(4, -1, -1, -1, -1)
    moved = single(images)
    assert torch.equal(moved[0], moved[2])
    assert not torch.equal(moved[0], moved[1])
    assert len(batch.draws) == 12


def test_what_is_used_must_be_known() -> None:
    task, blind = make_task(known=(*KNOWN, "gaussian:0.1")), make_task()
    hidden = release(task, count=2, share_labels=False)
    for knowledge in (Knowledge(), Knowledge(policy=True), Knowledge(noise=True), Knowledge(labels=False)):
        knowledge.check(task, [hidden])
    for knowledge, match in ((Knowledge(policy=True), "policy"), (Knowledge(noise=True), "noise")):
        with pytest.raises(KnowledgeError, match=match):
            knowledge.check(blind, [hidden])
    headless = replace(hidden, tensors={"a": torch.ones(3)})
    Knowledge(labels=False).check(blind, [headless])
    with pytest.raises(KnowledgeError, match="one entry per class"):
        Knowledge().check(blind, [headless])


def test_labels_are_found_or_searched_for_on_the_device_of_the_update() -> None:
    task = make_task()
    update = release(task, count=2)
    assert update.labels is not None
    assert torch.equal(Knowledge().start_labels(task, update), update.labels)
    searched = Knowledge(labels=False).start_labels(task, update.to("meta"))
    assert searched.is_meta
    logits = draw_logits(task, torch.stack([searched] * 3), [generator(place) for place in range(3)])
    assert logits.is_meta
    assert logits.shape == (3, 2, task.classes)
