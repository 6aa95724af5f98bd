"""The aligned score: PSNR against a target after the best flip, shift and brightness/contrast fit.

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
    guess, fill = guess.double().cpu(), fill.double().cpu()
    still = Still.of(target, fill)
    straight, mirrored = fit_shifts(Moved.of(guess), still), fit_shifts(Moved.of(guess.flip(-1)), still)
    flipped = mirrored.error < straight.error
    chosen = Fit(*(torch.where(flipped, m, s) for m, s in zip(mirrored.parts(), straight.parts(), strict=True)))
    source = torch.where(flipped.view(-1, 1, 1, 1), guess.flip(-1), guess)
    return Alignment(psnr_of_error(chosen.error), render(source, chosen, fill))


class AlignedTargets:
    """Targets N×C×H×W that many guesses are aligned with: what depends on the targets alone is computed once."""

    def __init__(self, images: Tensor, fill: Tensor) -> None:
        self.still = Still.of(images, fill)

    def score(self, guesses: Tensor, places: Tensor) -> Tensor:
        """Return the aligned PSNR of each guess at the target in its place; one guess alone serves all places."""
        still, guesses = self.still.take(places), guesses.double().cpu()
        errors = [fit_shifts(Moved.of(one), still).error for one in (guesses, guesses.flip(-1))]
        return psnr_of_error(torch.minimum(*errors))


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


def reach_of(images: Tensor) -> tuple[int, int]:
    """Return the largest shift down and right."""
    return int(images.shape[-2] * REACH), int(images.shape[-1] * REACH)


def spectrum(images: Tensor) -> Tensor:
    down, right = reach_of(images)
    frequencies: Tensor = torch.fft.rfft2(images, s=(images.shape[-2] + down, images.shape[-1] + right))
    return frequencies


def correlate(fixed: Tensor, moved: Tensor, shape: torch.Size) -> Tensor:
    """Sum fixed(p)·moved(p − shift) over channels and pixels for each shift: N×(2·down+1)×(2·right+1)."""
    height, width = shape[-2:]
    down, right = int(height * REACH), int(width * REACH)
    sums: Tensor = torch.fft.irfft2((fixed * moved.conj()).sum(1), s=(height + down, width + right))
    return sums.roll((down, right), (-2, -1))[:, : 2 * down + 1, : 2 * right + 1]


@dataclass(frozen=True, eq=False)
class Still:
    """What the fit needs of the targets, for every shift: their spectrum, sums, and the error outside the guess."""

    spectrum: Tensor
    sum_x: Tensor
    sum_xx: Tensor
    outside: Tensor

    @classmethod
    def of(cls, target: Tensor, fill: Tensor) -> "Still":
        target, fill = target.double().cpu(), fill.double().cpu()
        ones = spectrum(torch.ones_like(target[:1]))
        still, blank = spectrum(target), (target - fill) ** 2
        inside = correlate(spectrum(blank), ones, target.shape)
        return cls(
            still,
            correlate(still, ones, target.shape),
            correlate(spectrum(target**2), ones, target.shape),
            (blank.sum((1, 2, 3)).view(-1, 1, 1) - inside).clamp(min=0),
        )

    def take(self, places: Tensor) -> "Still":
        return Still(self.spectrum[places], self.sum_x[places], self.sum_xx[places], self.outside[places])


@dataclass(frozen=True, eq=False)
class Moved:
    """What the fit needs of the guesses, for every shift."""

    shape: torch.Size
    spectrum: Tensor
    covered: Tensor
    sum_g: Tensor
    variance: Tensor

    @classmethod
    def of(cls, guess: Tensor) -> "Moved":
        ones, moved = spectrum(torch.ones_like(guess[:1])), spectrum(guess)
        covered = correlate(ones, ones, guess.shape)
        sum_g, sum_gg = (correlate(ones, part, guess.shape) for part in (moved, spectrum(guess**2)))
        return cls(guess.shape, moved, covered, sum_g, (sum_gg - sum_g**2 / covered).clamp(min=0))


def fit_shifts(guess: Moved, target: Still) -> Fit:
    """Fit a·g + b for every shift at once, by cross-correlation, and keep the best shift of each image."""
    channels, height, width = guess.shape[1:]
    down, right = int(height * REACH), int(width * REACH)
    covered, sum_g, sum_x = guess.covered, guess.sum_g, target.sum_x
    covariance = correlate(target.spectrum, guess.spectrum, guess.shape) - sum_g * sum_x / covered
    # A flat guess has no contrast to fit: a = 0, and only b is fitted.
    contrast = torch.where(guess.variance > 1e-9 * covered, covariance / guess.variance.clamp(min=1e-30), 0.0)
    inside = (target.sum_xx - sum_x**2 / covered) - contrast * covariance
    error = (inside.clamp(min=0) + target.outside) / (channels * height * width)

    best = error.flatten(1).argmin(1)
    pick = best.view(-1, 1)
    brightness = (sum_x - contrast * sum_g) / covered
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
