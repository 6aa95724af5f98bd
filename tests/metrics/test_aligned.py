"""The aligned score undoes what it says it undoes, and nothing else."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from gradveil.metrics import AlignedTargets, align, psnr


def picture(seed: int = 0, channels: int = 3, height: int = 20, width: int = 24) -> Tensor:
    noise = torch.rand(2, channels, height, width, generator=torch.Generator().manual_seed(seed))
    return F.avg_pool2d(noise, 3, 1, 1)


def shifted(image: Tensor, down: int, right: int) -> Tensor:
    """Move with black where nothing comes from."""
    moved = torch.roll(image, (down, right), (-2, -1))
    rows, columns = torch.arange(image.shape[-2]), torch.arange(image.shape[-1])
    inside = ((rows - down >= 0) & (rows - down < len(rows))).view(-1, 1) & (
        (columns - right >= 0) & (columns - right < len(columns))
    )
    return moved * inside


@settings(max_examples=40, deadline=None)
@given(
    st.integers(-7, 7),
    st.integers(-7, 7),
    st.booleans(),
    st.floats(0.3, 1.5),
    st.floats(-0.2, 0.2),
    st.sampled_from([1, 3]),
)
def test_undoes_flip_shift_and_lighting(
    down: int, right: int, flip: bool, contrast: float, brightness: float, channels: int
) -> None:
    target = picture(channels=channels)
    guess = contrast * shifted(target, down, right) + brightness
    guess = guess.flip(-1) if flip else guess
    # With the truth as fill, only what is inside the frame can be wrong, and there the undoing is exact.
    assert align(guess, target, target).psnr.min() > 60


def test_what_was_lost_costs_as_much_as_the_fill() -> None:
    target = picture()
    fill = torch.full_like(target, 0.5)
    alignment = align(shifted(target, 0, 10), target, fill)
    expected = target.clone()
    expected[..., 14:] = 0.5
    assert (alignment.psnr >= psnr(expected, target) - 1e-6).all()
    assert alignment.psnr.max() < 40


def test_the_drawn_image_has_the_score() -> None:
    target, guess = picture(), picture(seed=1)
    alignment = align(guess, target, torch.full_like(target, 0.4))
    assert alignment.psnr.tolist() == pytest.approx(psnr(alignment.images, target).tolist(), abs=1e-6)


def test_is_never_below_the_plain_score() -> None:
    target, guess = picture(), picture(seed=2)
    assert (align(guess, target, target).psnr >= psnr(guess, target) - 1e-9).all()


def test_noise_gains_next_to_nothing_over_a_flat_guess() -> None:
    target = picture()
    fill = torch.full_like(target, 0.5)
    noise = torch.rand(target.shape, generator=torch.Generator().manual_seed(5))
    assert (align(noise, target, fill).psnr - align(fill, target, fill).psnr).abs().max() < 0.5


def test_many_targets_are_scored_as_each_by_itself() -> None:
    generator = torch.Generator().manual_seed(3)
    targets, fill, guesses = (torch.rand(5, 3, 12, 10, generator=generator) for _ in range(3))
    aligned = AlignedTargets(targets, fill)
    places = torch.tensor([4, 0, 0, 2, 1])
    expected = align(guesses, targets[places], fill[places]).psnr
    assert torch.allclose(aligned.score(guesses, places), expected)
    one = align(guesses[:1].expand(5, -1, -1, -1), targets[places], fill[places]).psnr
    assert torch.allclose(aligned.score(guesses[:1], places), one)
