"""SSIM against a plain loop over windows."""

import numpy as np
import pytest
import torch

from gradveil.metrics import ssim


def plain_ssim(x: np.ndarray, y: np.ndarray) -> float:
    """Wang et al. (2004), window by window."""
    places = np.arange(11) - 5
    line = np.exp(-(places**2) / (2 * 1.5**2))
    window = np.outer(line, line) / line.sum() ** 2
    scores = []
    for channel in range(x.shape[0]):
        for top in range(x.shape[1] - 10):
            for left in range(x.shape[2] - 10):
                a = x[channel, top : top + 11, left : left + 11]
                b = y[channel, top : top + 11, left : left + 11]
                mean_a, mean_b = (window * a).sum(), (window * b).sum()
                var_a, var_b = (window * (a - mean_a) ** 2).sum(), (window * (b - mean_b) ** 2).sum()
                cov = (window * (a - mean_a) * (b - mean_b)).sum()
                c1, c2 = 0.01**2, 0.03**2
                scores.append(
                    (2 * mean_a * mean_b + c1) * (2 * cov + c2) / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))
                )
    return float(np.mean(scores))


@pytest.mark.parametrize("shape", [(1, 14, 17), (3, 16, 12)])
def test_agrees_with_a_plain_loop(shape: tuple[int, int, int]) -> None:
    source = np.random.default_rng(1)
    x = source.random(shape)
    y = np.clip(x + 0.2 * source.standard_normal(shape), 0, 1)
    score = ssim(torch.tensor(x)[None], torch.tensor(y)[None])
    assert float(score) == pytest.approx(plain_ssim(x, y), abs=1e-9)


@pytest.mark.parametrize("side", [2, 3, 10])
def test_takes_images_smaller_than_its_window(side: int) -> None:
    image = torch.rand(2, 1, side, side, generator=torch.Generator().manual_seed(0))
    assert ssim(image, image).tolist() == pytest.approx([1, 1])
    assert (ssim(image, 1 - image) < 0.9).all()
