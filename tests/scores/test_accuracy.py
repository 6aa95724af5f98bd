"""S_acc against the plain loop of the published procedure, and its known values."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from benchmarks.scores_plain import plain_accuracy_at
from gradveil import data, models, rng
from gradveil.data import DataSet
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.scores import AccuracyScore
from gradveil.scores.accuracy import score_correlations, score_slopes
from gradveil.transforms import PolicySet, parse_policy

POLICIES = [parse_policy(text) for text in ("none", "3-1-7")]


@pytest.fixture(scope="module")
def sample() -> DataSet:
    return data.load("fashion-mnist-sample")


def build(name: str, sample: DataSet) -> nn.Module:
    return models.build(name, sample.shape, sample.classes, sample.mean, sample.std, rng.generator(0, "model"))


@pytest.mark.parametrize("name", ["convnet-16", "resnet20-1", "lenet-relu"])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_reference_form_is_the_published_procedure(name: str, policy: PolicySet, sample: DataSet) -> None:
    model = build(name, sample)
    score = AccuracyScore(model, sample.test.images, sample.test.labels, form="reference", batch=40, batches=2)
    for places, drawn in zip(score.groups, (range(40), range(40, 80)), strict=True):
        assert len(places) == len(set(sample.test.labels[drawn].tolist())) < 40
    assert score.score(policy) == pytest.approx(plain_accuracy_at(model, score, policy), rel=1e-4)


def test_our_form_is_the_reference_per_image_where_labels_differ(sample: DataSet) -> None:
    """The first ten places with different labels, as one batch: nothing is dropped, so only 1/N differs."""
    labels = sample.test.labels
    places = [int((labels == label).nonzero()[0]) for label in range(10)]
    images, labels = sample.test.images[places], labels[places]
    model = build("lenet-relu", sample)
    ours, reference = (
        AccuracyScore(model, images, labels, form=form, batch=10, batches=1).score(POLICIES[1])
        for form in ("ours", "reference")
    )
    assert reference == pytest.approx(10 * ours)


def test_colour_is_normalised_before_slopes_are_compared() -> None:
    """Slopes are those of the normalised image, so the scale of a channel does not count."""
    images = torch.randint(256, (6, 3, 12, 12), generator=rng.generator(0, "images"), dtype=torch.uint8)
    model = models.build("lenet-relu", (3, 12, 12), 4, (0.5, 0.4, 0.3), (0.3, 0.2, 0.1), rng.generator(0, "model"))
    score = AccuracyScore(model, images, torch.arange(6) % 4, batch=6, batches=1)
    inner = nn.Sequential(*list(model.children())[1:])
    plain = AccuracyScore(inner, images, torch.arange(6) % 4, batch=6, batches=1)
    pixels = score.transformed(POLICIES[0], range(6))
    normalised = (pixels - torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1)) / torch.tensor([0.3, 0.2, 0.1]).view(3, 1, 1)
    torch.testing.assert_close(score.slopes(pixels), plain.slopes(normalised))


def test_wholly_different_slopes_have_the_best_score() -> None:
    assert score_correlations(torch.eye(7, dtype=torch.float64), "ours") == pytest.approx(-1, abs=1e-9)
    assert score_correlations(torch.eye(7, dtype=torch.float64), "reference") == pytest.approx(-7, abs=1e-8)


@given(st.integers(2, 8), st.integers(0, 1000))
def test_no_batch_beats_the_best_score(count: int, seed: int) -> None:
    slopes = torch.randn(count, 12, generator=rng.generator(seed, "slopes"))
    assert score_slopes(slopes, "ours") <= -1 + 1e-9


def test_equal_images_have_the_worst_score() -> None:
    slopes = torch.randn(1, 30, generator=rng.generator(0, "slopes")).repeat(4, 1)
    known = -(3 * (math.log(1e-5) + 1e5) + math.log(4 + 1e-5) + 1 / (4 + 1e-5)) / 4
    assert score_slopes(slopes, "ours") == pytest.approx(known, rel=1e-6)


def test_an_image_without_slope_counts_as_bad_as_there_is() -> None:
    slopes = torch.randn(4, 30, generator=rng.generator(0, "slopes"))
    slopes[2] = 0
    score = score_slopes(slopes, "ours")
    assert math.isfinite(score)
    assert score < -1e4


def test_scale_and_offset_of_slopes_do_not_count() -> None:
    slopes = torch.randn(5, 40, generator=rng.generator(0, "slopes")).double()
    factors = torch.tensor([1.0, 10.0, 0.1, 3.0, 7.0]).double()
    changed = factors.view(-1, 1) * slopes + factors.flip(0).view(-1, 1)
    assert score_slopes(changed, "ours") == pytest.approx(score_slopes(slopes, "ours"))


def test_the_mean_is_over_batches_and_is_repeatable(sample: DataSet) -> None:
    model = build("lenet-relu", sample)
    score = AccuracyScore(model, sample.test.images, sample.test.labels, batch=10, batches=3)
    parts = list(score.batch_scores(POLICIES[1]))
    assert score.score(POLICIES[1]) == sum(parts) / 3
    first = AccuracyScore(model, sample.test.images, sample.test.labels, batch=10, batches=1)
    assert first.score(POLICIES[1]) == parts[0]
    assert score.score(parse_policy("43-39")) == score.score(parse_policy("24"))


def test_wrong_settings_are_refused(sample: DataSet) -> None:
    model, images, labels = build("lenet-relu", sample), sample.test.images[:30], sample.test.labels[:30]
    with pytest.raises(UnknownNameError, match="form of S_acc 'theirs': choose from ours, reference"):
        AccuracyScore(model, images, labels, form="theirs", batch=10, batches=1)  # type: ignore[arg-type]
    for batch, batches in ((1, 1), (10, 0), (16, 2)):
        with pytest.raises(SettingsError, match="enough images"):
            AccuracyScore(model, images, labels, batch=batch, batches=batches)
