"""Run draws through Pillow, one image at a time: what every kernel must equal to the bit."""

import torch
from hypothesis import strategies as st
from torch import Tensor

from gradveil.transforms import Policy, PolicyDraws, PolicySet, pillow


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
