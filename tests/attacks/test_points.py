"""Images as points that an optimiser moves."""

import pytest
import torch

from gradveil.attacks.points import Points, enlarge, shrink
from gradveil.rng import generator
from tests.attacks.scenes import plain_task, small_model

TASK = plain_task(small_model())
IMAGES = torch.randn(3, 2, 1, 12, 12, generator=generator(0))
LABELS = torch.tensor([[0, 1], [2, 3], [1, 1]])


def test_scales_keep_the_picture() -> None:
    smooth = torch.linspace(0, 1, 28).view(1, 1, 1, 28, 1).expand(1, 1, 1, 28, 28)
    assert shrink(smooth, 4).shape == (1, 1, 1, 7, 7)
    assert float((enlarge(shrink(smooth, 4), (28, 28)) - smooth).abs().max()) < 0.07


def test_points_are_the_images_and_pixels_are_what_a_model_takes() -> None:
    points = Points(TASK, IMAGES, LABELS)
    assert len(points) == 3
    assert torch.equal(points.images(), IMAGES)
    torch.testing.assert_close(points.pixels(), IMAGES * 0.5 + 0.5)
    assert torch.equal(points.chosen_labels(), LABELS)
    assert torch.equal(points.mean_colour(), torch.full_like(IMAGES, 0.5))


def test_moving_clamping_and_putting_back() -> None:
    points = Points(TASK, IMAGES, LABELS)
    before = points.flat.detach().clone()
    points.move(torch.full_like(before, 10.0))
    points.clamp()
    assert float(points.pixels().detach().max()) <= 1 + 1e-6
    assert not torch.equal(points.flat, before)
    points.put_back(torch.tensor([True, False, True]), before)
    assert torch.equal(points.flat[[0, 2]], before[[0, 2]])
    assert not torch.equal(points.flat[1], before[1])


def test_searched_labels_are_moved_with_the_images_and_survive_a_change_of_scale() -> None:
    logits = torch.randn(3, 2, 4, generator=generator(1))
    points = Points(TASK, shrink(IMAGES, 4), logits)
    assert points.images().shape == IMAGES.shape
    torch.testing.assert_close(points.labels(), logits.softmax(-1))
    assert torch.equal(points.chosen_labels(), logits.argmax(-1))
    points.rescale(1)
    assert points.flat.shape == (3, 2 * 144 + 2 * 4)
    torch.testing.assert_close(points.labels(), logits.softmax(-1))


@pytest.mark.parametrize("labels", [LABELS, torch.randn(3, 2, 4, generator=generator(1))])
def test_keeping_runs_keeps_their_labels(labels: torch.Tensor) -> None:
    points = Points(TASK, IMAGES, labels)
    expected = points.labels()[[2, 0]]
    points.keep(torch.tensor([2, 0]))
    assert torch.equal(points.images(), IMAGES[[2, 0]])
    torch.testing.assert_close(points.labels(), expected)
    assert points.flat.requires_grad


def test_points_stay_on_the_device() -> None:
    points = Points(TASK, IMAGES.to("meta"), LABELS.to("meta"))
    points.rescale(2)
    points.clamp()
    assert points.pixels().is_meta
    assert points.mean_colour().is_meta
