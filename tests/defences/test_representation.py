"""Soteria and PRECODE: what they do to the representation."""

import torch
from torch import nn
from torch.nn import functional as F

from gradveil import data
from gradveil.client import gradient, gradients_apart
from gradveil.defences import Precode, Soteria, compute_defended, list_edits, parse_defence
from gradveil.defences.soteria import features_of, sensitivity
from gradveil.models import ModelSpec
from gradveil.rng import generator, global_state_from
from gradveil.types import Batch

SPEC = ModelSpec("mlp", (1, 9, 9), 4, (0.5,), (0.5,))


def small_model() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(81, 12), nn.ReLU(), nn.Linear(12, 4)).eval()


def batch(count: int = 3) -> Batch:
    return Batch(torch.rand(count, 1, 9, 9, generator=generator(0)), torch.arange(count))


def plain_sensitivity(model: nn.Module, pixels: torch.Tensor) -> torch.Tensor:
    """Follow the definition, image by image and feature by feature."""
    total, active = torch.zeros(12), torch.zeros(12)
    for image in pixels:
        for place in range(12):
            alone = image[None].clone().requires_grad_()
            feature = features_of(model, alone)[0, place]
            (slope,) = torch.autograd.grad(feature, alone)
            if feature != 0:
                total[place] += slope.norm() / feature.abs()
                active[place] += 1
    return torch.where(active > 0, total / active, torch.inf)


def test_the_exact_ratios_follow_the_definition() -> None:
    with global_state_from(generator(1)):
        model = small_model()
    exact, plain = sensitivity(model, batch().pixels()), plain_sensitivity(model, batch().pixels())
    torch.testing.assert_close(exact, plain, rtol=1e-4, atol=0)


def test_many_probes_come_near_the_exact_ratios() -> None:
    with global_state_from(generator(1)):
        model = small_model()
        exact, near = (sensitivity(model, batch().pixels(), probes) for probes in (0, 500))
    torch.testing.assert_close(near, exact, rtol=0.2, atol=0)


def test_a_feature_that_rests_in_some_images_is_still_ranked() -> None:
    images = 2 * torch.rand(32, 1, 9, 9, generator=generator(0)) - 1
    with global_state_from(generator(1)):
        model = small_model()
    resting = (features_of(model, images) == 0).any(0)
    assert resting.sum() >= 6
    assert sensitivity(model, images).isfinite().all()


def test_the_default_probes_choose_nearly_the_exact_features() -> None:
    sample = data.load("fashion-mnist-sample")
    model = ModelSpec("lenet-relu", sample.shape, sample.classes, sample.mean, sample.std).build(generator(0)).eval()
    pixels = sample.train.images[:64] / 255
    with global_state_from(generator(1)):
        near, exact = (set(sensitivity(model, pixels, n).argsort()[:400].tolist()) for n in (Soteria(40).probes, 0))
    assert len(near & exact) >= 340


def test_the_most_telling_columns_are_hidden_and_nothing_else() -> None:
    with global_state_from(generator(1)):
        model = small_model()
    released = compute_defended([Soteria(25, 0)])(model, F.cross_entropy, batch(), generator(0))
    plain = gradient(model, F.cross_entropy, batch().pixels(), batch().labels)
    gone = plain_sensitivity(model, batch().pixels()).argsort()[:3]
    expected = plain["3.weight"].clone()
    expected[:, gone] = 0
    torch.testing.assert_close(released["3.weight"], expected)
    for name in ("1.weight", "1.bias", "3.bias"):
        torch.testing.assert_close(released[name], plain[name])


def test_for_a_single_image_the_choice_is_exact() -> None:
    with global_state_from(generator(1)):
        model = small_model()
    ours, exact = (
        compute_defended([Soteria(50, probes)])(model, F.cross_entropy, batch(1), generator(0)) for probes in (1, 0)
    )
    assert torch.equal(ours["3.weight"], exact["3.weight"])


def test_a_bottleneck_stands_before_the_last_layer() -> None:
    before = SPEC.build(generator(0))
    after = parse_defence("precode:width=5").model(before, generator(0))
    assert list_edits(before, after) == ("Linear → Sequential(Bottleneck, Linear): head",)
    again = parse_defence("precode:width=5").model(before, generator(0))
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in after.state_dict().items())


def test_gradients_are_drawn_and_predictions_are_not() -> None:
    model = Precode(5).model(SPEC.build(generator(0)), generator(0)).eval()
    one, other = (compute_defended([])(model, F.cross_entropy, batch(), generator(seed)) for seed in (0, 1))
    assert not torch.allclose(one["head.1.weight"], other["head.1.weight"])
    with torch.no_grad():
        assert torch.equal(model(batch().pixels()), model(batch().pixels()))


def test_the_divergence_is_part_of_the_loss() -> None:
    """Under a loss that is constant, what is left is the slope of β times the divergence."""
    model = Precode(5, 0.25).model(SPEC.build(generator(0)), generator(0)).eval()
    found = gradient(model, lambda logits, _: 0 * logits.sum(), batch().pixels(), batch().labels)
    encoder = model.get_submodule("head.0.encode")
    with torch.no_grad():
        hidden = model.get_submodule("body")(model.get_submodule("normalise")(batch().pixels()))
    mean, spread = encoder(hidden).chunk(2, dim=-1)
    normal = torch.distributions.Normal(mean, F.softplus(spread - 1.25))
    standard = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    divergence = torch.distributions.kl_divergence(normal, standard).sum(-1).mean()
    (expected,) = torch.autograd.grad(0.25 * divergence, [encoder.get_parameter("bias")])
    torch.testing.assert_close(found["head.0.encode.bias"], expected)


def test_the_bottleneck_works_for_many_clients_at_once() -> None:
    model = Precode(5).model(SPEC.build(generator(0)), generator(0)).eval()
    images = batch(4).pixels().view(2, 2, 1, 9, 9).requires_grad_()
    with global_state_from(generator(0)):
        found = gradients_apart(model, F.cross_entropy, images, batch(4).labels.view(2, 2))
    (slope,) = torch.autograd.grad(sum(tensor.square().sum() for tensor in found.values()), images)  # type: ignore[arg-type]
    assert torch.isfinite(slope).all()
    assert slope.any()
