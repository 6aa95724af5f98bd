"""The scores beside S_pri: what they measure, and that an image's score does not depend on the others."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil import data, models, rng
from gradveil.attacks import GradientMatching
from gradveil.data import DataSet
from gradveil.metrics import psnr
from gradveil.scores.blind import BlindScore
from gradveil.scores.brief import BriefAttackScore
from gradveil.scores.sensitivity import SensitivityScore
from gradveil.transforms import PolicySet, parse_policy
from gradveil.types import Batch, Task, to_pixels

IMAGES = slice(200, 206)
NONE, SHIFTED = parse_policy("none"), parse_policy("3-1-7")


@pytest.fixture(scope="module")
def sample() -> DataSet:
    return data.load("fashion-mnist-sample")


@pytest.fixture(scope="module")
def task(sample: DataSet) -> Task:
    model = models.build("lenet", sample.shape, sample.classes, sample.mean, sample.std, rng.generator(0, "model"))
    return Task(model.eval(), F.cross_entropy, sample.shape, sample.classes, sample.mean, sample.std)


def images_of(sample: DataSet) -> tuple[Tensor, Tensor]:
    return sample.test.images[IMAGES], sample.test.labels[IMAGES]


def blind_score(sample: DataSet) -> BlindScore:
    public = Batch(sample.train.images[:400], sample.train.labels[:400])
    return BlindScore(*images_of(sample), public, sample.classes)


def make(kind: str, sample: DataSet, task: Task) -> BlindScore | SensitivityScore | BriefAttackScore:
    if kind == "blind":
        return blind_score(sample)
    if kind == "sensitivity":
        return SensitivityScore(task.model, *images_of(sample))
    attack = GradientMatching(steps=3, start="class-mean", total_variation=0.0)
    return BriefAttackScore(task, *images_of(sample), blind_score(sample), attack)


@pytest.mark.parametrize("kind", ["blind", "sensitivity", "brief"])
@pytest.mark.parametrize("policy", [NONE, SHIFTED], ids=str)
def test_the_score_of_an_image_does_not_depend_on_the_others(
    kind: str, policy: PolicySet, sample: DataSet, task: Task
) -> None:
    score = make(kind, sample, task)
    whole = score.score(policy)
    assert whole.dtype == torch.float64
    assert whole.isfinite().all()
    assert torch.equal(score.score(policy, [5, 1]), whole[[5, 1]])
    assert torch.equal(make(kind, sample, task).score(policy), whole)


def test_the_blind_score_is_minus_the_psnr_of_a_guess_that_saw_training_images_only(sample: DataSet) -> None:
    score = blind_score(sample)
    images, labels = images_of(sample)
    guess = score.floor(NONE).guess(labels)
    assert torch.equal(score.score(NONE), -psnr(guess, to_pixels(images)))
    flat = Batch(torch.full_like(sample.train.images[:40], 7), sample.train.labels[:40])
    unfit = BlindScore(images, labels, flat, sample.classes)
    assert (unfit.score(NONE) > score.score(NONE)).float().mean() > 0.5


def test_a_gradient_that_turns_more_scores_higher(sample: DataSet, task: Task) -> None:
    near = SensitivityScore(task.model, *images_of(sample), radius=0.01).score(NONE)
    far = SensitivityScore(task.model, *images_of(sample), radius=0.2).score(NONE)
    assert (far > near).all()


def test_more_steps_of_a_brief_attack_gain_more(sample: DataSet, task: Task) -> None:
    images = images_of(sample)
    attack = GradientMatching(steps=1, start="class-mean", signed=False, total_variation=0.0)
    gained = [
        BriefAttackScore(task, *images, blind_score(sample), steps).score(NONE).mean()
        for steps in (attack, GradientMatching(steps=60, start="class-mean"))
    ]
    assert gained[1] > gained[0] + 0.5
