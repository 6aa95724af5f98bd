"""Distances between gradients, their slopes, and the levelling of parameters."""

import pytest
import torch
from torch import Tensor

from gradveil.attacks import Distance, cosine, direction, l1, l2, layerwise
from gradveil.attacks.distances import lay_flat, levelling, similarities, sizes_of
from gradveil.rng import generator

DISTANCES = (cosine, layerwise, l2, l1, direction)


def gradients_like(seed: int) -> dict[str, Tensor]:
    shapes = {"a": (2, 3, 4), "b": (2, 5)}
    return {name: torch.randn(*shape, generator=generator(seed, name)) for name, shape in shapes.items()}


def test_distances_are_zero_at_the_released_gradient_only() -> None:
    released = gradients_like(1)
    sizes = sizes_of(released)
    assert sizes == {"a": 12, "b": 5}
    flat = lay_flat(released, sizes)
    for measure in DISTANCES:
        torch.testing.assert_close(measure(flat, flat, sizes)[0], torch.zeros(2), atol=1e-6, rtol=0)
        assert bool((measure(flat + 0.5, flat, sizes)[0] > 1e-3).all())
    assert all(torch.allclose(values, torch.ones(2)) for values in similarities(flat, flat, sizes).values())


@pytest.mark.parametrize("measure", DISTANCES)
def test_distances_know_their_slopes(measure: Distance) -> None:
    released, candidate = gradients_like(1), gradients_like(2)
    sizes = sizes_of(released)
    theirs, ours = lay_flat(released, sizes).double(), lay_flat(candidate, sizes).double().requires_grad_()
    distance, slope = measure(ours, theirs, sizes)
    (expected,) = torch.autograd.grad(distance.sum(), ours)
    torch.testing.assert_close(slope, expected)


def test_levelling_gives_every_parameter_the_same_say() -> None:
    released, candidate = gradients_like(1), gradients_like(2)
    released["a"], candidate["a"] = 1000 * released["a"], 1000 * candidate["a"]
    sizes = sizes_of(released)
    theirs, ours = lay_flat(released, sizes), lay_flat(candidate, sizes)
    apart = (ours / ours.norm(dim=1, keepdim=True) - theirs / theirs.norm(dim=1, keepdim=True)).square()
    factors = levelling(ours, theirs, sizes)
    for part in torch.split(apart * factors.square(), list(sizes.values()), 1):
        torch.testing.assert_close(part.mean(1), torch.ones(2), rtol=1e-4, atol=0)
    torch.testing.assert_close(levelling(5 * ours, theirs, sizes), factors, rtol=1e-4, atol=0)


def test_an_entry_that_never_differs_has_no_infinite_weight() -> None:
    released = gradients_like(1)
    sizes = sizes_of(released)
    flat = lay_flat(released, sizes)
    assert bool(levelling(flat, flat, sizes).isfinite().all())


@pytest.mark.parametrize("measure", DISTANCES)
def test_distances_stay_on_the_device(measure: Distance) -> None:
    flat = torch.zeros(2, 17, device="meta")
    sizes = {"a": 12, "b": 5}
    distances, slope = measure(flat, flat, sizes)
    assert distances.shape == (2,)
    assert slope.shape == levelling(flat, flat, sizes).shape == (2, 17)
    assert distances.is_meta
    assert slope.is_meta
    assert levelling(flat, flat, sizes).is_meta
