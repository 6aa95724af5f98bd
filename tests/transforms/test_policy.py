import pickle
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor

from gradveil.errors import DataError, PolicyError, SettingsError
from gradveil.rng import generator
from gradveil.transforms import (
    CATALOGUES,
    BaseAugmentation,
    BatchTransform,
    Policy,
    PolicyDraws,
    PolicySet,
    parse_policy,
    pillow,
    share_transforms,
)

HYBRID = parse_policy("3-1-7+43-18-18")
EVERY_KIND: list[BatchTransform[Any]] = [HYBRID, Policy((14, 9)), BaseAugmentation()]


def make_images(count: int = 8, channels: int = 3, side: int = 12) -> Tensor:
    return torch.randint(256, (count, channels, side, side), generator=generator(0, "images")).to(torch.uint8)


def test_none_changes_nothing_but_copies() -> None:
    images = make_images()
    done = parse_policy("none").transform(images, generator(0))
    assert torch.equal(done, images)
    assert done.data_ptr() != images.data_ptr()


def test_policies_are_values() -> None:
    twin = parse_policy("3-1-7+43-18-18")
    assert twin == HYBRID
    assert hash(twin) == hash(HYBRID)
    assert len({twin, HYBRID, parse_policy("43-18-18+3-1-7"), parse_policy("wide/3-1-7+43-18-18")}) == 3
    with pytest.raises(AttributeError):
        HYBRID.policies = ()  # type: ignore[misc]


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


def test_images_of_a_batch_draw_each_for_itself() -> None:
    draws = HYBRID.sample(4000, generator(3))
    assert draws.members.bincount().tolist() == pytest.approx([2000, 2000], abs=150)
    for member in (0, 1):
        assert draws.signs[draws.members == member].double().mean(0).abs().max() < 0.08


def test_steps_without_a_sign_hold_plus_one() -> None:
    draws = parse_policy("9-39-14+2").sample(200, generator(4))
    assert (draws.signs[:, :2] == 1).all()
    assert (draws.signs[draws.members == 1] == 1).all()
    assert set(draws.signs[draws.members == 0, 2].tolist()) == {-1, 1}


def test_draws_are_taken_joined_and_indexed() -> None:
    images = make_images()
    draws = HYBRID.sample(8, generator(5))
    order = torch.tensor([5, 0, 7])
    assert torch.equal(HYBRID.apply(images[order], draws.take(order)), HYBRID.apply(images, draws)[order])
    whole = PolicyDraws.join([draws[index] for index in range(8)])
    assert torch.equal(whole.members, draws.members)
    assert torch.equal(whole.signs, draws.signs)
    assert torch.equal(draws[-1].signs, draws.signs[-1:])
    with pytest.raises(IndexError):
        draws[8]


@pytest.mark.parametrize(
    ("text", "count"), [("none", 1), ("9", 1), ("3", 2), ("3-1-7", 8), ("3-1-7+43-18-18", 16), ("2-39-20+none+4", 5)]
)
def test_all_possible_draws_are_listed_once(text: str, count: int) -> None:
    policies = parse_policy(text)
    draws = policies.draws()
    rows = {(int(member), tuple(signs.tolist())) for member, signs in zip(draws.members, draws.signs, strict=True)}
    assert len(draws) == len(rows) == count
    assert policies.probabilities(draws).sum() == pytest.approx(1)
    sampled = policies.sample(500, generator(6))
    assert {(int(m), tuple(s.tolist())) for m, s in zip(sampled.members, sampled.signs, strict=True)} == rows


def test_probabilities_follow_the_number_of_signs() -> None:
    policies = parse_policy("9+3-1")
    assert policies.probabilities(policies.draws()).tolist() == [0.5, 0.125, 0.125, 0.125, 0.125]


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


def test_draws_of_no_usable_shape_are_refused() -> None:
    with pytest.raises(SettingsError, match="they must be N and N×steps"):
        PolicyDraws(torch.zeros(3, dtype=torch.int64), torch.ones(2, 3, dtype=torch.int8))


def test_draws_of_another_policy_are_refused() -> None:
    images = make_images()
    with pytest.raises(SettingsError, match="draws with 1 signs for 3-1-7, which has 3 steps"):
        Policy((3, 1, 7)).apply(images, Policy((3,)).sample(8, generator(0)))
    with pytest.raises(SettingsError, match=r"draws of more members than 3-1-7\+43-18-18 has"):
        HYBRID.apply(images, parse_policy("3-1-7+3-1-7+3-1-7").sample(8, generator(1)))


@pytest.mark.parametrize("transform", EVERY_KIND, ids=str)
def test_no_images_give_no_images(transform: BatchTransform[Any]) -> None:
    images = make_images(0)
    assert transform.transform(images, generator(0)).shape == images.shape


@given(st.lists(st.integers(0, 49), max_size=3).map(tuple), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_function_names_what_is_computed(indices: tuple[int, ...], seed: int) -> None:
    """Policies of one name give the same images for the same signs."""
    policy = Policy(indices)
    twin = parse_policy(policy.readable).policies[0]
    assert twin.function == policy.function
    images = make_images(4, side=9)
    draws = policy.sample(4, generator(seed))
    assert torch.equal(policy.apply(images, draws), twin.apply(images, draws))


def test_shared_indices_and_functions_are_reported() -> None:
    published = share_transforms(Policy((42, 28, 42)), Policy((14, 48, 48)))
    assert published.indices == frozenset()
    assert published.functions == {"translateY:3"}
    apart = share_transforms(Policy((3, 1, 7)), Policy((43, 18, 18)))
    assert (apart.indices, apart.functions) == (frozenset(), frozenset())
    same = share_transforms(Policy((3, 39)), Policy((39, 3)))
    assert same.indices == {3, 39}
    assert same.functions == {"translateX:9"}


def test_policies_out_of_range_are_refused() -> None:
    with pytest.raises(PolicyError, match="index 50 is not in catalogue v1: choose from 0 to 49"):
        Policy((3, 50))
    with pytest.raises(PolicyError, match="index -1"):
        Policy((-1,))
    with pytest.raises(PolicyError, match="4 steps: at most 3"):
        Policy((1, 2, 3, 4))
    with pytest.raises(PolicyError, match="without policies"):
        PolicySet(())
    with pytest.raises(PolicyError, match="catalogues v1, wide in one set"):
        PolicySet((Policy((1,)), Policy((1,), CATALOGUES["wide"])))
