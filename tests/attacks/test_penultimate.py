"""The features before the last layer, as a term of a distance."""

import pytest
import torch

from gradveil.attacks import WithFeatures, cosine, l2
from gradveil.attacks.distances import lay_flat, sizes_of
from gradveil.attacks.penultimate import feature_gap, last_classes
from gradveil.errors import SettingsError
from gradveil.rng import generator
from tests.attacks.scenes import make_task, pictures, release

SIZES = {"body.weight": 7, "head.weight": 12, "head.bias": 3}


def draw(seed: int) -> torch.Tensor:
    return torch.randn(2, 22, generator=generator(seed), dtype=torch.float64)


@pytest.mark.parametrize("distance", [cosine, l2])
def test_the_slope_is_that_of_the_distance(distance: object) -> None:
    whole = WithFeatures(distance, 0.3)  # type: ignore[arg-type]
    candidate, released = draw(0), draw(1)
    _, slope = whole(candidate, released, SIZES)
    step = 1e-6
    for entry in (0, 8, 13, 18, 19, 20, 21):
        moved = candidate.clone()
        moved[:, entry] += step
        measured = (whole(moved, released, SIZES)[0] - whole(candidate, released, SIZES)[0]) / step
        torch.testing.assert_close(slope[:, entry], measured, rtol=1e-3, atol=1e-4)


def test_the_features_of_one_image_are_those_that_enter_the_last_layer() -> None:
    task = make_task()
    seen: list[torch.Tensor] = []
    handle = task.model.head.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].detach()))  # type: ignore[union-attr]
    task.model(pictures().pixels()[:2])
    handle.remove()
    tensors = [{name: tensor[None] for name, tensor in release(task, image).tensors.items()} for image in (0, 1)]
    sizes = sizes_of(tensors[0])
    classes = last_classes(sizes)
    assert classes is not None
    apart, _ = feature_gap(lay_flat(tensors[0], sizes), lay_flat(tensors[1], sizes), *classes)
    torch.testing.assert_close(apart[0], (seen[0][0] - seen[0][1]).square().mean(), rtol=1e-3, atol=1e-6)


def test_without_a_linear_last_layer_nothing_is_added() -> None:
    sizes = {"head.bias": 10, "kernel": 12}
    for given in (sizes, {"kernel": 22}):
        whole, plain = (distance(draw(0), draw(1), given) for distance in (WithFeatures(), cosine))
        assert all(map(torch.equal, whole, plain))


def test_a_bias_without_a_gradient_divides_nothing() -> None:
    released = draw(1)
    released[:, 19:] = 0
    distances, slope = WithFeatures()(draw(0), released, SIZES)
    assert distances.isfinite().all()
    assert slope.isfinite().all()


def test_weights_out_of_range_are_refused() -> None:
    with pytest.raises(SettingsError, match="above 0"):
        WithFeatures(weight=0.0)
