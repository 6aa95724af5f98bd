"""How likely an update and an image are."""

import pytest
import torch

from gradveil.attacks.likelihood import TYPICAL_VARIATION, image_surprise, update_surprise
from gradveil.attacks.priors import total_variation
from gradveil.rng import generator
from tests.attacks.scenes import sample


def test_surprise_is_that_of_the_best_length() -> None:
    released, gradient = (torch.randn(1, 50, generator=generator(seed)).double() for seed in (1, 2))
    gradient = gradient + released
    length = (released * gradient).sum() / gradient.square().sum()
    expected = (released - length * gradient).square().sum() / (2 * 0.3**2)
    distance = 1 - torch.cosine_similarity(released, gradient)
    assert float(update_surprise(distance, released, 0.3)) == pytest.approx(float(expected))


def test_the_typical_variation_is_that_of_the_sample() -> None:
    part = sample()
    pixels = (part.train.images[:1000] / 255 - part.mean[0]) / part.std[0]
    assert float(total_variation(pixels[:, None]).mean()) == pytest.approx(TYPICAL_VARIATION, rel=0.05)


def test_an_image_is_the_more_surprising_the_rougher_and_larger_it_is() -> None:
    assert image_surprise(torch.tensor([TYPICAL_VARIATION, 0.0]), 100).tolist() == pytest.approx([100.0, 0.0])
