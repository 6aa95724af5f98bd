"""GradSim against torch's own cosine, for tensors of all sizes."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil.rng import generator
from gradveil.scores.similarity import SMALL, Form, compare, multiply

SIZES = (3, 3, SMALL + 1, 7)


def draw(points: int) -> list[Tensor]:
    """Draw gradients of two images, images×points×values for each parameter tensor."""
    source = generator(0, "gradients")
    return [torch.randn(2, points, size, generator=source, dtype=torch.float64) for size in SIZES]


def cosines(parts: list[Tensor], form: Form) -> Tensor:
    """Compare every point with the last, plainly."""
    if form == "global":
        parts = [torch.cat(parts, 2)]
    return torch.stack([F.cosine_similarity(part, part[:, -1:], dim=2) for part in parts]).mean(0)


@pytest.mark.parametrize("form", ["layerwise", "global"])
def test_it_is_the_cosine_of_torch(form: Form) -> None:
    parts = draw(4)
    torch.testing.assert_close(compare(multiply(parts), form), cosines(parts, form))


@pytest.mark.parametrize("form", ["layerwise", "global"])
def test_a_start_is_one_more_point_before_the_last(form: Form) -> None:
    parts = draw(4)
    starts = [part[:, 2] for part in parts]
    rest = [part[:, [0, 1, 3]] for part in parts]
    torch.testing.assert_close(compare(multiply(rest, starts), form), cosines(parts, form))


def test_a_tensor_without_gradient_is_similar_to_nothing() -> None:
    similarity = compare(multiply([torch.zeros(1, 2, 5), torch.ones(1, 2, 5)]), "layerwise")
    torch.testing.assert_close(similarity, torch.full((1, 2), 0.5, dtype=torch.float64))
