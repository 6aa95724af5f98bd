"""PSNR against its definition."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradveil.metrics import psnr
from gradveil.metrics.psnr import CEILING


@given(st.integers(1, 4), st.sampled_from([1, 3]), st.integers(2, 20), st.integers(2, 20), st.integers(0, 999))
def test_follows_the_definition(count: int, channels: int, height: int, width: int, seed: int) -> None:
    source = np.random.default_rng(seed)
    first, second = source.random((2, count, channels, height, width))
    expected = [10 * np.log10(1 / np.mean((a - b) ** 2)) for a, b in zip(first, second, strict=True)]
    assert psnr(torch.tensor(first), torch.tensor(second)).numpy() == pytest.approx(expected)


def test_identical_images_score_the_ceiling() -> None:
    image = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    assert psnr(image, image).tolist() == [CEILING, CEILING]
