"""What every transform of images can do."""

import pickle
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor

from gradveil.errors import DataError
from gradveil.rng import generator
from gradveil.transforms import BaseAugmentation, BatchTransform, Policy, PolicySet, parse_policy, pillow
from tests.transforms.pillow_reference import batches

HYBRID = parse_policy("3-1-7+43-18-18")
EVERY_KIND: list[BatchTransform[Any]] = [HYBRID, Policy((14, 9)), BaseAugmentation()]


def make_images(count: int = 8, channels: int = 3, side: int = 12) -> Tensor:
    return torch.randint(256, (count, channels, side, side), generator=generator(0, "images")).to(torch.uint8)


@pytest.mark.parametrize("transform", EVERY_KIND, ids=str)
def test_transforms_survive_pickling(transform: BatchTransform[Any]) -> None:
    again = pickle.loads(pickle.dumps(transform))
    assert again == transform
    images = make_images()
    assert torch.equal(again.transform(images, generator(1)), transform.transform(images, generator(1)))


@pytest.mark.parametrize("transform", EVERY_KIND, ids=str)
def test_draws_are_replayed(transform: BatchTransform[Any]) -> None:
    images = make_images()
    draws = transform.sample(len(images), generator(2))
    assert torch.equal(transform.apply(images, draws), transform.apply(images, draws))
    assert torch.equal(transform.apply(images, draws), transform.transform(images, generator(2)))


@pytest.mark.parametrize("transform", EVERY_KIND, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_float_images_give_the_same_as_bytes(transform: BatchTransform[Any], dtype: torch.dtype) -> None:
    images = make_images()
    draws = transform.sample(len(images), generator(7))
    done = transform.apply((images.double() / 255).to(dtype), draws)
    assert done.dtype == dtype
    assert torch.equal((done.double() * 255).round().to(torch.uint8), transform.apply(images, draws))


def test_float_images_are_rounded_and_clipped() -> None:
    images = torch.tensor([-0.3, 0.4 / 255, 0.6 / 255, 1.4]).view(1, 1, 2, 2)
    assert parse_policy("none").transform(images, generator(0)).flatten().tolist() == pytest.approx([0, 0, 1 / 255, 1])


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_pil_image_gives_a_pil_image(mode: str) -> None:
    image = pillow.to_image(make_images(1, 1 if mode == "L" else 3)[0])
    done = parse_policy("0")(image)
    assert isinstance(done, Image.Image)
    assert (done.mode, done.size) == (mode, image.size)
    assert torch.equal(pillow.to_tensor(done), 255 - pillow.to_tensor(image))


def test_other_modes_are_refused() -> None:
    with pytest.raises(DataError, match=r"mode RGBA: only L and RGB are supported; call image.convert\('RGB'\)"):
        HYBRID(Image.new("RGBA", (4, 4)))


def test_one_tensor_gives_one_tensor() -> None:
    image = make_images(1)[0]
    assert parse_policy("0")(image).shape == image.shape
    assert parse_policy("0")(image / 255).dtype == torch.float32


def test_call_draws_from_the_default_generator() -> None:
    """That is how torchvision's own transforms draw, and what a DataLoader seeds in its workers."""
    images = make_images()
    with torch.random.fork_rng():
        torch.manual_seed(11)
        first = HYBRID(images)
        torch.manual_seed(11)
        again = HYBRID(images)
        other = HYBRID(images)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 2, 8, 8), (1, 4, 8, 8), (2, 3, 1, 8), (2, 3, 8, 1)], ids=str)
def test_images_of_no_usable_shape_are_refused(shape: tuple[int, ...]) -> None:
    images = torch.zeros(shape, dtype=torch.uint8)
    with pytest.raises(DataError, match="they must be N×1×H×W or N×3×H×W with sides of at least 2"):
        HYBRID.apply(images, HYBRID.sample(len(images), generator(0)))


def test_images_of_no_usable_type_are_refused() -> None:
    with pytest.raises(DataError, match=r"images are torch\.int64: they must be uint8, or float"):
        HYBRID.transform(torch.zeros(1, 3, 4, 4, dtype=torch.int64), generator(0))


def test_draws_of_another_batch_are_refused() -> None:
    with pytest.raises(DataError, match="8 images and draws for 3"):
        HYBRID.apply(make_images(), HYBRID.sample(3, generator(0)))


@pytest.mark.parametrize("transform", EVERY_KIND, ids=str)
def test_no_images_give_no_images(transform: BatchTransform[Any]) -> None:
    images = make_images(0)
    assert transform.transform(images, generator(0)).shape == images.shape


def test_bytes_have_no_gradients() -> None:
    policies = parse_policy("3")
    with pytest.raises(DataError, match="gradients need float images"):
        policies.differentiable(torch.zeros(1, 1, 4, 4, dtype=torch.uint8), policies.sample(1, generator(0)))


@given(batches(largest=16), st.lists(st.integers(0, 49), max_size=3).map(tuple), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_values_are_those_of_the_bytes(images: Tensor, indices: tuple[int, ...], seed: int) -> None:
    policies = PolicySet((Policy(indices), Policy((14, 10))))
    draws = policies.sample(len(images), generator(seed))
    values = policies.differentiable(images / 255, draws)
    torch.testing.assert_close(values, policies.apply(images, draws) / 255, atol=1e-6, rtol=0)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_picture_is_transformed_with_a_generator(mode: str) -> None:
    images = make_images(1, 1 if mode == "L" else 3)
    done = HYBRID.transform_picture(pillow.to_image(images[0]), generator(3))
    assert done.mode == mode
    assert torch.equal(pillow.to_tensor(done), HYBRID.transform(images, generator(3))[0])
