"""Run draws through Pillow, one image at a time: what every kernel must equal to the bit."""

import torch
from hypothesis import strategies as st
from torch import Tensor

from gradveil.rng import generator
from gradveil.transforms import OPERATIONS, Catalogue, Operation, Policy, PolicyDraws, PolicySet, Transform, pillow

EVERYTHING = Catalogue(
    "everything", tuple(Transform(operation, level) for operation in OPERATIONS.values() for level in range(10))
)
SHAPES = ((1, 31, 28), (3, 32, 32), (3, 17, 33), (3, 331, 2), (3, 2, 331), (3, 97, 211))


def apply_one(name: str, image: Tensor, magnitude: float) -> Tensor:
    """Apply an operation to one image, uint8 C×H×W."""
    return pillow.to_tensor(pillow.OPERATIONS[name](pillow.to_image(image), magnitude))


def apply_all(name: str, images: Tensor, magnitudes: Tensor) -> Tensor:
    pairs = zip(images, magnitudes.tolist(), strict=True)
    return torch.stack([apply_one(name, image, magnitude) for image, magnitude in pairs])


def apply_policy(policies: PolicySet, images: Tensor, parameters: PolicyDraws) -> Tensor:
    done = []
    for image, member, signs in zip(images, parameters.members.tolist(), parameters.signs.tolist(), strict=True):
        done.append(apply_steps(policies.policies[member], image, signs))
    return torch.stack(done)


def apply_steps(policy: Policy, image: Tensor, signs: list[int]) -> Tensor:
    for transform, sign in zip(policy.transforms, signs, strict=False):
        image = apply_one(transform.operation.name, image, transform.magnitude * sign)
    return image


def noise(shape: tuple[int, int, int, int], source: torch.Generator) -> Tensor:
    return torch.randint(256, shape, generator=source)


def narrow(shape: tuple[int, int, int, int], source: torch.Generator) -> Tensor:
    """Few values, anywhere: flat channels, and histograms that the equaliser leaves alone."""
    low = torch.randint(256, (*shape[:2], 1, 1), generator=source)
    return (low + torch.randint(0, 4, shape, generator=source)).clamp(max=255)


def smooth(shape: tuple[int, int, int, int], source: torch.Generator) -> Tensor:
    """Slopes with clipped ends, as photographs have."""
    coarse = torch.rand(*shape[:2], 3, 3, generator=source) * 320 - 30
    return torch.nn.functional.interpolate(coarse, size=shape[2:], mode="bilinear").clamp(0, 255)


def two_values(shape: tuple[int, int, int, int], source: torch.Generator) -> Tensor:
    return torch.randint(2, shape, generator=source) * 255


@st.composite
def batches(draw: st.DrawFn, largest: int = 40) -> Tensor:
    """Draw a batch of uint8 images N×C×H×W of any size and several kinds."""
    sides = st.integers(2, 9) | st.integers(2, largest)
    shape = (draw(st.integers(1, 5)), draw(st.sampled_from([1, 3])), draw(sides), draw(sides))
    make = draw(st.sampled_from([noise, narrow, smooth, two_values]))
    source = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    return make(shape, source).to(torch.uint8)


def assert_equals_pillow(policies: PolicySet, images: Tensor, seed: int) -> None:
    draws = policies.sample(len(images), generator(seed))
    assert torch.equal(policies.apply(images, draws), apply_policy(policies, images, draws)), policies.readable


def magnitudes_of(operation: Operation) -> st.SearchStrategy[float]:
    """Draw any magnitude in the operation's range, with either sign if it has one; half as far again as AutoAugment."""
    low, high = sorted((operation.low, operation.high))
    if operation.signed:
        return st.floats(-1.5 * high, 1.5 * high)
    return st.floats(low, high)


def check_any_magnitudes(name: str, data: st.DataObject) -> None:
    """Compare a kernel with Pillow on drawn images and magnitudes; the images must stay as they are."""
    images = data.draw(batches())
    magnitude = magnitudes_of(OPERATIONS[name])
    drawn = data.draw(st.lists(magnitude, min_size=len(images), max_size=len(images)))
    magnitudes = torch.tensor(drawn, dtype=torch.float64)
    before = images.clone()
    assert torch.equal(OPERATIONS[name].kernel(images, magnitudes), apply_all(name, images, magnitudes))
    assert torch.equal(images, before)


def check_every_level(name: str) -> None:
    """Compare every level of an operation with Pillow on images of usual, odd and large sizes."""
    for shape in SHAPES:
        images = torch.randint(256, (4, *shape), generator=generator(0, *shape)).to(torch.uint8)
        for index, transform in enumerate(EVERYTHING.transforms):
            if transform.operation.name == name:
                assert_equals_pillow(PolicySet((Policy((index,), EVERYTHING),)), images, index)
