"""The layer that every model begins with."""

import pytest
import torch

from gradveil import models
from gradveil.rng import generator
from tests.models.test_registry import COLOUR, SMALL, build


@pytest.mark.parametrize("name", SMALL)
def test_normalisation_is_the_first_layer(name: str) -> None:
    """Images of the mean colour must look like zeros to the rest of the model."""
    model = build(name).eval()
    first = next(child for child in model.children())
    assert isinstance(first, models.Normalise)
    mean = torch.tensor(COLOUR[0]).view(1, 3, 1, 1).expand(1, 3, 32, 32)
    assert torch.equal(first(mean), torch.zeros(1, 3, 32, 32))
    assert not any("normalise" in key for key in model.state_dict())


def test_pixels_get_zero_mean_and_unit_variance() -> None:
    images = torch.rand(64, 3, 8, 8, generator=generator(0, "images"))
    mean, std = images.mean((0, 2, 3)), images.std((0, 2, 3))
    normalised = models.Normalise(mean.tolist(), std.tolist())(images)
    torch.testing.assert_close(normalised.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(normalised.std((0, 2, 3)), torch.ones(3))
