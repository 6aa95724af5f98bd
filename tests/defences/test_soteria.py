"""Soteria: which features it hides."""

import torch
from torch import nn

from gradveil import data
from gradveil.defences import Soteria, compute_defended
from gradveil.defences.soteria import features_of, sensitivity
from gradveil.gradients import gradient
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.rng import generator, global_state_from
from gradveil.types import Batch


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
    released = compute_defended([Soteria(25, 0)])(model, CrossEntropy(), batch(), generator(0))
    plain = gradient(model, CrossEntropy(), batch().pixels(), batch().labels)
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
        compute_defended([Soteria(50, probes)])(model, CrossEntropy(), batch(1), generator(0)) for probes in (1, 0)
    )
    assert torch.equal(ours["3.weight"], exact["3.weight"])
