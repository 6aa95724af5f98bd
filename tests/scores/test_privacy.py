"""S_pri against the plain loop of the published procedure, and what it may not depend on."""

import pytest
import torch
from torch import nn

from benchmarks.scores_plain import plain_curve, plain_privacy_at, transformed
from gradveil import data, models, rng
from gradveil.data import DataSet
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.losses import CrossEntropy
from gradveil.scores import PrivacyRiseScore, PrivacyScore, find_quadrature, privacy
from gradveil.scores.similarity import Form
from gradveil.transforms import parse_policy

POLICY = parse_policy("3-1-7")
FORMS: tuple[Form, ...] = ("layerwise", "global")


@pytest.fixture(scope="module")
def sample() -> DataSet:
    return data.load("fashion-mnist-sample")


def build(name: str, sample: DataSet) -> nn.Module:
    """Make a model whose batch normalisation has seen images."""
    model = models.build(name, sample.shape, sample.classes, sample.mean, sample.std, rng.generator(0, "model"))
    with torch.no_grad():
        model.train()(sample.train.images[:32].float() / 255)
    return model


def make(
    sample: DataSet, model: nn.Module, count: int = 5, quadrature: str = "gauss-2", form: Form = "layerwise"
) -> PrivacyScore:
    return PrivacyScore(
        model, sample.test.images[:count], sample.test.labels[:count], form=form, quadrature=quadrature, seed=3
    )


@pytest.mark.parametrize("name", ["convnet-16", "resnet20-1", "lenet-relu", "lenet"])
def test_it_is_the_published_procedure(name: str, sample: DataSet) -> None:
    model = build(name, sample)
    for form in FORMS:
        score = make(sample, model, 1, "trapezoid-21", form)
        assert score.score(POLICY).item() == pytest.approx(plain_privacy_at(model, score, POLICY, 0), rel=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_it_is_the_published_procedure_in_double_precision(form: Form, sample: DataSet) -> None:
    model = build("lenet-relu", sample).double()
    score = make(sample, model, 2, "trapezoid-21", form)
    plain = [plain_privacy_at(model, score, POLICY, place) for place in range(2)]
    assert score.score(POLICY).tolist() == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("quadrature", ["riemann-4", "gauss-3", "radau-3", "lobatto-4"])
def test_every_quadrature_weighs_the_same_curve(quadrature: str, sample: DataSet) -> None:
    model = build("lenet-relu", sample).double()
    score, rule = make(sample, model, 1, quadrature), find_quadrature(quadrature)
    target = transformed(score, POLICY, 0)
    curve = plain_curve(model, score.starts[:1], target, score.labels[:1], rule.nodes)
    area = sum(weight * value for weight, value in zip(rule.weights, curve, strict=True))
    assert score.score(POLICY).item() == pytest.approx(area, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "quadrature"),
    [("lenet-relu", "gauss-2"), ("lenet-relu", "trapezoid-21"), ("resnet20-1", "lobatto-4"), ("convnet-16", "gauss-3")],
)
def test_an_image_has_one_score_to_the_bit(name: str, quadrature: str, sample: DataSet) -> None:
    model = build(name, sample)
    whole = make(sample, model, 5, quadrature).score(POLICY)
    for places in ([4], [3, 0], [2, 2]):
        assert torch.equal(make(sample, model, 5, quadrature).score(POLICY, places), whole[places])


def test_what_was_scored_before_does_not_matter(sample: DataSet) -> None:
    score = make(sample, build("lenet-relu", sample), 5, "lobatto-4")
    first = score.score(POLICY)
    score.score(parse_policy("43-18-18"), [2])
    assert torch.equal(score.score(POLICY), first)


def test_start_gradients_need_not_be_kept(sample: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("lenet-relu", sample)
    kept = make(sample, model, 5, "lobatto-4")
    scores = kept.score(POLICY)
    assert kept.kept
    monkeypatch.setattr(privacy, "MEMORY", 0)
    fresh = make(sample, model, 5, "lobatto-4")
    assert torch.equal(fresh.score(POLICY), scores)
    assert not fresh.kept


def test_the_same_function_has_the_same_score(sample: DataSet) -> None:
    score = make(sample, build("lenet-relu", sample))
    assert torch.equal(score.score(parse_policy("43-39-18")), score.score(parse_policy("24-18")))
    assert torch.equal(score.score(parse_policy("39")), score.score(parse_policy("none")))


def test_seed_and_start_are_what_is_drawn(sample: DataSet) -> None:
    model, images, labels = build("lenet-relu", sample), sample.test.images[:3], sample.test.labels[:3]
    scores = {
        (start, seed): PrivacyScore(model, images, labels, quadrature="gauss-2", start=start, seed=seed)
        for start in ("uniform", "normal")
        for seed in (0, 1)
    }
    assert len({tuple(score.score(POLICY).tolist()) for score in scores.values()}) == 4
    assert 0 <= scores["uniform", 0].starts.min() < scores["uniform", 0].starts.max() <= 1
    normal = (scores["normal", 0].starts - sample.mean[0]) / sample.std[0]
    assert normal.mean().item() == pytest.approx(0, abs=0.1)
    assert normal.std().item() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("form", FORMS)
def test_the_curve_ends_at_the_image_itself(form: Form, sample: DataSet) -> None:
    score = make(sample, build("lenet-relu", sample), 3, form=form)
    curves = score.curves(POLICY, [0.0, 0.5, 1.0])
    assert curves.dtype == torch.float64
    assert curves.shape == (3, 3)
    assert torch.allclose(curves[:, 2], torch.ones(3, dtype=torch.float64), atol=1e-6)
    assert (curves[:, 0] < 0.99).all()
    assert torch.equal(score.area(score.curves(POLICY, score.quadrature.nodes)), score.score(POLICY))


def test_a_tensor_without_gradient_is_similar_to_nothing(sample: DataSet) -> None:
    """A layer that is dead has a cosine of 0 in the papers' code, at i = 1 as well."""
    model = build("lenet-relu", sample)
    model.body[6].weight.data.zero_()  # type: ignore[index, union-attr]
    model.body[6].bias.data.fill_(-1.0)  # type: ignore[index, union-attr]
    score = make(sample, model, 1, "radau-2")
    alive = 1 / 10  # the last bias alone
    assert score.curves(POLICY, [1.0]).item() == pytest.approx(alive, abs=1e-6)


def test_images_may_be_pixels_already(sample: DataSet) -> None:
    model, images, labels = build("lenet-relu", sample), sample.test.images[:2], sample.test.labels[:2]
    scores = [PrivacyScore(model, kind, labels, quadrature="gauss-2") for kind in (images, images.float() / 255)]
    assert torch.equal(scores[0].score(POLICY), scores[1].score(POLICY))


def test_the_global_state_is_left_alone(sample: DataSet) -> None:
    state = torch.get_rng_state()
    make(sample, build("lenet-relu", sample)).score(POLICY)
    assert torch.equal(torch.get_rng_state(), state)


def test_wrong_settings_are_refused(sample: DataSet) -> None:
    model, images, labels = build("lenet-relu", sample), sample.test.images[:2], sample.test.labels[:2]
    with pytest.raises(UnknownNameError, match="form of GradSim 'whole': choose from global, layerwise"):
        PrivacyScore(model, images, labels, form="whole")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="start 'zeros': choose from normal, uniform"):
        PrivacyScore(model, images, labels, start="zeros")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="quadrature 'simpson-3'"):
        PrivacyScore(model, images, labels, quadrature="simpson-3")
    with pytest.raises(SettingsError, match="labels of shape"):
        PrivacyScore(model, images, labels[:1])
    with pytest.raises(SettingsError, match="at least one"):
        PrivacyScore(model, images[:0], labels[:0])
    score = PrivacyScore(model, images, labels, quadrature="gauss-2")
    with pytest.raises(SettingsError, match="places from 0 to 1"):
        score.score(POLICY, [2])
    with pytest.raises(SettingsError, match="points from 0 to 1"):
        score.curves(POLICY, [1.5])


def test_the_loss_of_the_weights_counts(sample: DataSet) -> None:
    """Of a model that knows nothing yet, the two gradients are nearly parallel; this one is sure of its answers."""
    model, images, labels = build("lenet-relu", sample), sample.test.images[:4], sample.test.labels[:4]
    list(model.parameters())[-2].data.mul_(30)
    default, plain, smoothed = (
        PrivacyScore(model, images, labels, quadrature="gauss-2", loss=loss).score(POLICY)
        for loss in (None, CrossEntropy(), CrossEntropy(0.1))
    )
    assert torch.equal(default, plain)
    assert not torch.allclose(plain, smoothed, rtol=1e-3)


def test_the_rise_is_what_lies_above_the_start(sample: DataSet) -> None:
    score = make(sample, build("lenet-relu", sample), 3)
    start = score.curves(POLICY, [0.0])[:, 0]
    assert torch.equal(PrivacyRiseScore(score).score(POLICY, [2, 0]), (score.score(POLICY) - start)[[2, 0]])
