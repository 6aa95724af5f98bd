"""The attacker who knows how strong the noise is."""

from dataclasses import replace
from typing import cast

import pytest
import torch
from gradveil.attacks.judging import judge, rank
from gradveil.attacks.release import TYPICAL_VARIATION, known_noise, misfit
from torch.nn import functional as F

from gradveil import data
from gradveil.attacks import ATTACKS, Ensemble, GradientMatching
from gradveil.attacks.priors import total_variation
from gradveil.defences import defend_update, parse_defences
from gradveil.errors import SettingsError
from gradveil.metrics import psnr
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import Batch, Reconstruction, Task, Update

NOISE = "gaussian:0.01"
NEAREST = replace(cast(GradientMatching, ATTACKS["noise"]), steps=150, total_variation=0.1, last_variation=0.01)


def make_task(known: tuple[str, ...] = (NOISE,)) -> Task:
    sample = data.load("fashion-mnist-sample")
    model = build("lenet-relu", sample.shape, sample.classes, sample.mean, sample.std, generator(0, "model")).eval()
    public = Batch(sample.train.images[:200], sample.train.labels[:200])
    return Task(model, F.cross_entropy, sample.shape, sample.classes, sample.mean, sample.std, known, public)


def release(task: Task, image: int, defence: str = NOISE) -> tuple[Batch, Update]:
    test = data.load("fashion-mnist-sample").test
    batch = Batch(test.images[image : image + 1], test.labels[image : image + 1])
    return batch, defend_update(parse_defences([defence]), task.model, task.loss, batch, generator(3, "noise", image))


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
    assert known_noise(make_task(known), images=4) == pytest.approx(deviation)


def test_the_noise_of_many_participants_averages_out() -> None:
    for known, deviation in ((("gaussian:0.5",), 0.25), (("dpsgd:noise=3:clip=0.5",), 0.75)):
        assert known_noise(replace(make_task(known), participants=4), images=4) == pytest.approx(deviation)


@pytest.mark.parametrize("defence", ["gaussian:0.02", "laplacian:0.02", "dpsgd:noise=0.02:clip=100"])
def test_the_noise_is_as_strong_as_is_said(defence: str) -> None:
    task = make_task((defence,))
    noised, plain = (
        torch.cat([tensor.flatten() for tensor in release(task, 0, which)[1].tensors.values()])
        for which in (defence, "gaussian:0")
    )
    assert float((noised - plain).std()) == pytest.approx(known_noise(task, 1), rel=0.02)


def test_misfit_is_that_of_the_best_length() -> None:
    released, gradient = (torch.randn(1, 50, generator=generator(seed)).double() for seed in (1, 2))
    gradient = gradient + released
    length = (released * gradient).sum() / gradient.square().sum()
    expected = (released - length * gradient).square().sum() / (2 * 0.3**2)
    distance = 1 - torch.cosine_similarity(released, gradient)
    assert float(misfit(distance, released, 0.3)) == pytest.approx(float(expected))


def test_the_typical_variation_is_that_of_the_sample() -> None:
    sample = data.load("fashion-mnist-sample")
    pixels = (sample.train.images[:1000] / 255 - sample.mean[0]) / sample.std[0]
    assert float(total_variation(pixels[:, None]).mean()) == pytest.approx(TYPICAL_VARIATION, rel=0.05)


def test_without_known_noise_the_loss_alone_ranks() -> None:
    task = make_task(("prune:50",))
    batch, update = release(task, 0, "prune:50")
    truth = Reconstruction(batch.pixels(), batch.labels, 0.0)
    loss = judge(task, update, truth)
    assert rank(task, update, truth, loss) == loss


def test_the_truth_ranks_before_what_took_the_noise_for_a_picture() -> None:
    task = make_task()
    batch, update = release(task, 0, "gaussian:0.05")
    told = replace(task, known_defences=("gaussian:0.05",))
    truth = Reconstruction(batch.pixels(), batch.labels, 0.0)
    nearest = NEAREST(task, update, generator(0))
    losses = [judge(told, update, one) for one in (truth, nearest)]
    assert losses[1] < losses[0]
    assert rank(told, update, truth, losses[0]) < rank(told, update, nearest, losses[1])


def test_knowing_the_noise_helps() -> None:
    task = make_task()
    attack = replace(cast(GradientMatching, ATTACKS["noise-aware"]), steps=150)
    pairs = [release(task, image) for image in range(4)]
    gained = []
    for fed, update in pairs:
        aware, blind = (one(task, update, generator(0)) for one in (attack, NEAREST))
        both = Ensemble({"blind": NEAREST, "aware": attack})(task, update, generator(0))
        gained.append(float(psnr(aware.images, fed.pixels()) - psnr(blind.images, fed.pixels())))
        assert float(psnr(both.images, fed.pixels())) > float(psnr(blind.images, fed.pixels()))
    assert min(gained) > 1


def test_known_noise_is_weighed_against_the_cosine_only() -> None:
    with pytest.raises(SettingsError, match="cosine"):
        GradientMatching(knows_noise=True, distance="l2")
    with pytest.raises(SettingsError, match="relative"):
        GradientMatching(knows_noise=True, relative=True)
