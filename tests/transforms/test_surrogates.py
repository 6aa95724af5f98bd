"""Surrogates, and the gradients that flow through them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradveil.rng import generator
from gradveil.transforms import CATALOGUE, OPERATIONS, Policy, PolicySet, parse_policy
from tests.transforms.pillow_reference import batches

SMOOTH = [name for name, operation in OPERATIONS.items() if operation.surrogate is not None]


@pytest.mark.parametrize("index", range(50))
def test_images_that_are_not_contiguous_are_taken(index: int) -> None:
    images = torch.rand(3, 6, 7, 3, generator=generator(index)).permute(0, 3, 1, 2)
    policies = PolicySet((Policy((index,)),))
    draws = policies.sample(3, generator(0))
    values = policies.differentiable(images, draws)
    torch.testing.assert_close(values, policies.differentiable(images.contiguous(), draws))


@pytest.mark.parametrize("name", SMOOTH)
@given(batches(largest=16), st.integers(0, 9))
@settings(max_examples=20, deadline=None)
def test_surrogates_are_the_operations_without_rounding(name: str, images: Tensor, level: int) -> None:
    """Rounding the grey level in between can move a blend by another half step."""
    operation = OPERATIONS[name]
    magnitudes = torch.full((len(images),), operation.magnitude(level), dtype=torch.float64)
    assert operation.surrogate is not None
    smooth = operation.surrogate(images.double() / 255, magnitudes) * 255
    assert (smooth - operation.kernel(images, magnitudes)).abs().max() <= 1.5


@pytest.mark.parametrize("name", [name for name in SMOOTH if name != "autocontrast"])
@pytest.mark.parametrize("channels", [1, 3])
def test_surrogate_gradients_are_right(name: str, channels: int) -> None:
    """Checked by finite differences, away from the ends of the range."""
    operation = OPERATIONS[name]
    assert operation.surrogate is not None
    images = 0.4 + 0.2 * torch.rand(2, channels, 4, 5, dtype=torch.float64, generator=generator(1))
    magnitudes = torch.full((2,), operation.magnitude(2), dtype=torch.float64)
    images.requires_grad_()
    assert torch.autograd.gradcheck(lambda pixels: operation.surrogate(pixels, magnitudes), images)  # type: ignore[misc]


def test_autocontrast_passes_gradients_to_its_extremes() -> None:
    images = torch.tensor([0.2, 0.4, 0.5, 0.6], dtype=torch.float64).view(1, 1, 2, 2).requires_grad_()
    stretch = OPERATIONS["autocontrast"].surrogate
    assert stretch is not None
    assert torch.autograd.gradcheck(lambda pixels: stretch(pixels, torch.zeros(1)), images)


@pytest.mark.parametrize("index", range(50), ids=lambda index: f"{index}-{CATALOGUE[index]}")
@pytest.mark.parametrize("shape", [(4, 3, 7, 6), (4, 1, 2, 2)], ids=str)
def test_first_and_second_gradients_flow_through_every_entry(index: int, shape: tuple[int, ...]) -> None:
    """A gradient-matching attacker differentiates twice; and 8-bit runs before must not get in the way."""
    images = torch.randint(60, 200, shape, generator=generator(index)).to(torch.uint8)
    policies = PolicySet((Policy((index,)),))
    draws = policies.sample(4, generator(0))
    policies.apply(images, draws)
    pixels = (images / 255).requires_grad_()
    (first,) = torch.autograd.grad(policies.differentiable(pixels, draws).pow(2).sum(), pixels, create_graph=True)
    (second,) = torch.autograd.grad(first.pow(2).sum(), pixels)
    for gradient in (first, second):
        assert gradient.isfinite().all()
        assert gradient.flatten(1).abs().sum(1).gt(0).all()


def test_straight_through_operations_pass_the_gradient_on() -> None:
    images = torch.rand(3, 3, 20, 20, generator=generator(5), requires_grad=True)
    policies = parse_policy("9-11")
    weights = torch.rand(3, 3, 20, 20, generator=generator(6))
    torch.autograd.backward((policies.differentiable(images, policies.sample(3, generator(7))) * weights).sum())
    assert images.grad is not None
    assert torch.equal(images.grad, weights)


def test_policy_aware_optimisation_finds_the_image() -> None:
    """Descending through the policy recovers what it only moved or inverted, where it is in sight."""
    policies = parse_policy("43-0")
    target = torch.rand(2, 1, 12, 12, generator=generator(8))
    draws = policies.sample(2, generator(9))
    released = policies.apply(target, draws)
    guess = torch.full_like(target, 0.5, requires_grad=True)
    optimiser = torch.optim.Adam([guess], lr=0.02)
    for _ in range(150):
        optimiser.zero_grad()
        torch.autograd.backward((policies.differentiable(guess, draws) - released).pow(2).mean())
        optimiser.step()
    assert (policies.apply(guess.detach(), draws) - released).abs().max() < 0.02
