"""What a search has to match, with what is known of the client and of the release."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from gradveil.attacks import matching_loss
from gradveil.attacks.distances import cosine
from gradveil.attacks.observation import AssumedDraws, observe
from gradveil.client.simulation import ALONE
from gradveil.defences import Released, known_release, parse_defences
from gradveil.rng import generator
from gradveil.transforms import parse_policy
from gradveil.types import Batch, LocalTraining
from tests.attacks.scenes import plain_task, small_model, update_of


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("name", ["lenet-relu", "convnet-2"])
def test_one_by_one_or_side_by_side_is_the_same(name: str, mode: str) -> None:
    images, labels = torch.rand(3, 2, 1, 12, 12, generator=generator(1)), torch.tensor([[0, 1], [2, 3], [3, 3]])
    task, local = plain_task(small_model(name)), LocalTraining(mode="train" if mode == "train" else "eval")
    updates = [update_of(task, Batch(*pair), local) for pair in zip(images, labels, strict=True)]
    observation = observe(task, updates, torch.arange(3))
    assert len(images) > ALONE
    together = observation.candidate(images, labels)
    alone = torch.cat([observation.candidate(*pair) for pair in zip(images[:, None], labels[:, None], strict=True)])
    torch.testing.assert_close(together, observation.released, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(alone, observation.released, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("defence", ["prune:95", "topk:5", "soteria:40", "sign", "prune:95,sign", "percentile"])
def test_the_true_image_matches_through_a_known_release(defence: str) -> None:
    batch = Batch(torch.rand(1, 1, 12, 12, generator=generator(1)), torch.tensor([2]))
    task = plain_task(small_model())
    update = update_of(task, batch, defences=defence.split(","))
    told = replace(task, known_defences=parse_defences(defence.split(",")))
    assert matching_loss(task, update, batch.images, batch.labels) > 1e-3
    assert matching_loss(told, update, batch.images, batch.labels) == pytest.approx(0, abs=1e-5)
    observation = observe(told, [update] * 3, torch.arange(3)).keep(torch.tensor([0, 2]))
    candidate = observation.candidate(batch.images.expand(2, 1, -1, -1, -1), batch.labels.expand(2, 1))
    if "sign" in defence:
        torch.testing.assert_close(candidate.sign(), observation.released.sign())
    else:
        torch.testing.assert_close(candidate, observation.released, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("defence", ["oasis", "oasis:minor+hflip", "censor", "censor,oasis"])
def test_the_true_image_matches_what_the_client_is_known_to_compute(defence: str) -> None:
    batch = Batch(torch.rand(1, 1, 12, 12, generator=generator(1)), torch.tensor([2]))
    task = plain_task(small_model())
    update = update_of(task, batch, defences=defence.split(","))
    told = replace(task, known_defences=parse_defences(defence.split(",")))
    assert matching_loss(task, update, batch.images, batch.labels) > 1e-3
    assert matching_loss(told, update, batch.images, batch.labels) == pytest.approx(0, abs=1e-5)
    assert matching_loss(told, update, 1 - batch.images, batch.labels) > 1e-5


def test_a_known_cap_on_the_length_shortens_candidates() -> None:
    batch = Batch(torch.rand(1, 1, 12, 12, generator=generator(1)), torch.tensor([2]))
    task = plain_task(small_model())
    update = update_of(task, batch, defences=["clip:0.01"])
    pixels, labels = batch.images[None], batch.labels[None]
    apart = []
    for known in ((), parse_defences(["clip:0.01"])):
        observation = observe(replace(task, known_defences=known), [update], torch.arange(1))
        apart.append(float((observation.candidate(pixels, labels) - observation.released).detach().norm()))
    assert apart[1] < 1e-4 * apart[0]


def test_coarse_rounding_is_weighed_and_fine_rounding_is_not() -> None:
    batch = Batch(torch.rand(1, 1, 12, 12, generator=generator(1)), torch.tensor([2]))
    task = plain_task(small_model())
    for bits, weighed in ((2, True), (3, True), (4, False)):
        update = update_of(task, batch, defences=[f"quantise:{bits}"])
        told = replace(task, known_defences=parse_defences([f"quantise:{bits}"]))
        observation = observe(told, [update] * 2, torch.arange(2)).keep(torch.tensor([1]))
        candidate = observation.candidate(batch.images[None], batch.labels[None]).detach()
        plain = cosine(candidate, observation.released, observation.sizes)
        found = observation.measure(cosine, candidate)
        assert torch.equal(found[0], plain[0]) != weighed
        assert found[1].isfinite().all()


def test_the_draw_of_a_bottleneck_is_read_off_and_repeated() -> None:
    known = parse_defences(["precode:width=4"])
    model = known[0].model(small_model(), generator(1))
    batch = Batch(torch.rand(1, 1, 12, 12, generator=generator(1)), torch.tensor([2]))
    task = replace(plain_task(model), known_defences=known)
    update = update_of(task, batch)
    assert observe(task, [update], torch.arange(1)).release.shown is None
    assert matching_loss(task, update, batch.images, batch.labels) == pytest.approx(0, abs=1e-5)
    assert matching_loss(task, update, 1 - batch.images, batch.labels) > 3e-5
    assert matching_loss(replace(task, known_defences=()), update, batch.images, batch.labels) > 1e-3


def test_what_a_known_bottleneck_drew_is_left_out() -> None:
    known = parse_defences(["precode:width=4", "prune:50"])
    model = known[0].model(small_model(), generator(1))
    batch = Batch(torch.rand(1, 1, 12, 12, generator=generator(1)), torch.tensor([2]))
    task = replace(plain_task(model), known_defences=known)
    update = update_of(task, batch, defences=["prune:50"])
    observation = observe(task, [update], torch.arange(1))
    assert observation.release.shown is not None
    sizes = list(observation.sizes.values())
    shown = dict(zip(observation.sizes, torch.split(observation.release.shown[0], sizes), strict=True))
    for name, entries in shown.items():
        if name.startswith("head."):
            assert not entries.any()
        else:
            assert torch.equal(entries, update.tensors[name].flatten() != 0)
    nothing_else = known[0].model(nn.Sequential(nn.Flatten(), nn.Linear(144, 4)), generator(1))
    all_drawn = Released(torch.ones(1, 2), {"1.0.encode.weight": 1, "1.1.weight": 1}, nothing_else, 1)
    assert known_release(known[:1], all_drawn).shown is None
    assert observe(replace(task, known_defences=()), [update], torch.arange(1)).release.shown is None


def test_assumed_draws_follow_their_runs() -> None:
    policy = parse_policy("43")  # translateY up or down: two draws
    draws = AssumedDraws(policy, policy.draws(), 1)
    images = torch.rand(2, 1, 1, 12, 12, generator=generator(1))
    moved = draws(images)
    assert not torch.equal(moved, images)
    kept = draws.keep(torch.tensor([1]))
    assert torch.equal(kept(images[1:]), moved[1:])
    assert torch.equal(kept.repeat(2)(images[1:].expand(2, -1, -1, -1, -1)), moved[1:].expand(2, -1, -1, -1, -1))


@pytest.mark.parametrize("name", ["lenet-relu", "convnet-2"])
@pytest.mark.parametrize("local", [LocalTraining(), LocalTraining(steps=2, batch_size=1), LocalTraining(mode="train")])
def test_everything_stays_on_the_device_of_the_update(name: str, local: LocalTraining) -> None:
    batch = Batch(torch.rand(2, 1, 12, 12, generator=generator(1)), torch.tensor([2, 1]))
    task = plain_task(small_model(name))
    update = update_of(task, batch, local)
    known = parse_defences(["prune:50", "sign", "gaussian:0.1"])
    there = replace(task, known_defences=known).to("meta")
    observation = observe(there, [update.to("meta")] * 3, torch.arange(3))
    pixels, labels = batch.images.expand(3, 2, -1, -1, -1).to("meta"), batch.labels.expand(3, 2).to("meta")
    candidate = observation.candidate(pixels, labels)
    assert candidate.is_meta
    assert candidate.shape == observation.released.shape
    levelled = observation.level(pixels, labels)
    assert levelled.levelled_slope(candidate).is_meta
