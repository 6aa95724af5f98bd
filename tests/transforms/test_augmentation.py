import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradveil.errors import SettingsError
from gradveil.rng import generator
from gradveil.transforms import BaseAugmentation, CropFlipDraws
from tests.transforms.pillow_reference import batches


def crop_and_flip(image: Tensor, padding: int, top: int, left: int, flip: bool) -> Tensor:
    """Do to one image, in plain words, what the batched transform does."""
    channels, height, width = image.shape
    padded = torch.zeros(channels, height + 2 * padding, width + 2 * padding, dtype=image.dtype)
    padded[:, padding : padding + height, padding : padding + width] = image
    window = padded[:, top : top + height, left : left + width]
    return window.flip(2) if flip else window


@given(batches(largest=20), st.integers(0, 6), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_equals_the_plain_loop(images: Tensor, padding: int, seed: int) -> None:
    augmentation = BaseAugmentation(padding)
    draws = augmentation.sample(len(images), generator(seed))
    plain = [
        crop_and_flip(image, padding, int(top), int(left), bool(flip))
        for image, top, left, flip in zip(images, *draws.tensors(), strict=True)
    ]
    assert torch.equal(augmentation.apply(images, draws), torch.stack(plain))


def test_draws_are_uniform() -> None:
    draws = BaseAugmentation().sample(9000, generator(0))
    for corners in (draws.tops, draws.lefts):
        assert corners.bincount(minlength=9).tolist() == pytest.approx([1000] * 9, rel=0.15)
    assert float(draws.flips.double().mean()) == pytest.approx(0.5, abs=0.03)


def test_middle_without_flip_is_the_image_itself() -> None:
    images = torch.randint(256, (2, 3, 8, 8), generator=generator(1)).to(torch.uint8)
    middle, no = torch.full((2,), 4), torch.zeros(2, dtype=torch.bool)
    assert torch.equal(BaseAugmentation().apply(images, CropFlipDraws(middle, middle, no)), images)


def test_gradient_goes_where_the_pixels_came_from() -> None:
    images = torch.rand(5, 1, 6, 6, generator=generator(2), requires_grad=True)
    augmentation = BaseAugmentation()
    draws = augmentation.sample(5, generator(3))
    weights = torch.rand(5, 1, 6, 6, generator=generator(4))
    torch.autograd.backward((augmentation.differentiable(images, draws) * weights).sum())
    ones = torch.full((5, 1, 6, 6), 255, dtype=torch.uint8)
    assert images.grad is not None
    assert images.grad.count_nonzero() == augmentation.apply(ones, draws).count_nonzero()


def test_negative_padding_is_refused() -> None:
    with pytest.raises(SettingsError, match="padding of -1: give 0 or more"):
        BaseAugmentation(-1)
