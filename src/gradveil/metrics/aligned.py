"""The aligned score: PSNR against the original after the best flip, shift and brightness/contrast fit.

A perfect copy of a picture that is shifted, flipped or brightened is a leak, but its pixel-wise score is low. Here the
guess g may be flipped, shifted by whole pixels and fitted as a·g + b (one a and b for all channels, least squares)
before it is compared. Target pixels that a shift leaves uncovered are compared with a fill that needs no gradient, so
a picture of which only half was rebuilt scores at least as much as the fill alone.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.metrics.psnr import psnr_of_error

REACH = 0.5
"""Largest shift as a share of the side: the strongest published translation moves a picture by 0.45 of it."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """The best alignment of each guess: PSNR in dB and the aligned guess itself."""

    psnr: Tensor
    images: Tensor


def align(guess: Tensor, target: Tensor, fill: Tensor) -> Alignment:
    """Find, for each image of N×C×H×W, the flip, shift and brightness/contrast fit with the highest PSNR."""
    guess, target, fill = guess.double().cpu(), target.double().cpu(), fill.double().cpu()
    straight, mirrored = fit_shifts(guess, target, fill), fit_shifts(guess.flip(-1), target, fill)
    flipped = mirrored.error < straight.error
    chosen = Fit(*(torch.where(flipped, m, s) for m, s in zip(mirrored.parts(), straight.parts(), strict=True)))
    source = torch.where(flipped.view(-1, 1, 1, 1), guess.flip(-1), guess)
    return Alignment(psnr_of_error(chosen.error), render(source, chosen, fill))


@dataclass(frozen=True, eq=False)
class Fit:
    """Per image: mean squared error, shift down and right, contrast a and brightness b."""

    error: Tensor
    down: Tensor
    right: Tensor
    contrast: Tensor
    brightness: Tensor

    def parts(self) -> tuple[Tensor, ...]:
        return self.error, self.down, self.right, self.contrast, self.brightness


def fit_shifts(guess: Tensor, target: Tensor, fill: Tensor) -> Fit:
    """Fit a·g + b for every shift at once, by cross-correlation, and keep the best shift of each image."""
    channels, height, width = guess.shape[1:]
    down, right = int(height * REACH), int(width * REACH)

    def spectrum(images: Tensor) -> Tensor:
        frequencies: Tensor = torch.fft.rfft2(images, s=(height + down, width + right))
        return frequencies

    def correlate(fixed: Tensor, moved: Tensor) -> Tensor:
        """Sum fixed(p)·moved(p − shift) over channels and pixels for each shift: N×(2·down+1)×(2·right+1)."""
        sums: Tensor = torch.fft.irfft2((fixed * moved.conj()).sum(1), s=(height + down, width + right))
        return sums.roll((down, right), (-2, -1))[:, : 2 * down + 1, : 2 * right + 1]

    ones, moved, still = spectrum(torch.ones_like(guess)), spectrum(guess), spectrum(target)
    covered = correlate(ones, ones)
    sum_g, sum_gg = correlate(ones, moved), correlate(ones, spectrum(guess**2))
    sum_x, sum_xx = correlate(still, ones), correlate(spectrum(target**2), ones)
    sum_gx = correlate(still, moved)
    blank = (target - fill) ** 2
    outside = blank.sum((1, 2, 3)).view(-1, 1, 1) - correlate(spectrum(blank), ones)

    variance = (sum_gg - sum_g**2 / covered).clamp(min=0)
    covariance = sum_gx - sum_g * sum_x / covered
    # A flat guess has no contrast to fit: a = 0, and only b is fitted.
    contrast = torch.where(variance > 1e-9 * covered, covariance / variance.clamp(min=1e-30), 0.0)
    brightness = (sum_x - contrast * sum_g) / covered
    inside = (sum_xx - sum_x**2 / covered) - contrast * covariance
    error = (inside.clamp(min=0) + outside.clamp(min=0)) / (channels * height * width)

    best = error.flatten(1).argmin(1)
    pick = best.view(-1, 1)
    return Fit(
        error.flatten(1).gather(1, pick)[:, 0],
        best // (2 * right + 1) - down,
        best % (2 * right + 1) - right,
        contrast.flatten(1).gather(1, pick)[:, 0],
        brightness.flatten(1).gather(1, pick)[:, 0],
    )


def render(guess: Tensor, fit: Fit, fill: Tensor) -> Tensor:
    """Draw each guess as its fit places it."""
    height, width = guess.shape[-2:]
    drawn = []
    for image, blank, down, right, contrast, brightness in zip(guess, fill, *fit.parts()[1:], strict=True):
        # A target pixel p shows the guess at p + shift, as `correlate` counts shifts.
        rows = torch.arange(height) - int(down)
        columns = torch.arange(width) - int(right)
        inside = ((rows >= 0) & (rows < height)).view(-1, 1) & ((columns >= 0) & (columns < width)).view(1, -1)
        moved = image[:, rows.clamp(0, height - 1)][:, :, columns.clamp(0, width - 1)]
        drawn.append(torch.where(inside, contrast * moved + brightness, blank))
    return torch.stack(drawn)
