"""Optimisers of many targets at once, against those of torch."""

import pytest
import torch
from torch import Tensor

from gradveil.attacks import Adam, LimitedMemory, Nesterov, Optimiser
from gradveil.rng import generator


def bowl(points: Tensor) -> Tensor:
    """A convex function of each row, stiffer along later entries."""
    stiffness = torch.arange(1, points.shape[1] + 1, dtype=points.dtype)
    return (stiffness * (points - 1).square()).sum(1) + (points[:, :1] - 1).pow(4).sum(1)


def slopes_of(points: Tensor) -> Tensor:
    leaf = points.detach().requires_grad_()
    (slope,) = torch.autograd.grad(bowl(leaf).sum(), leaf)
    return slope


def walk(optimiser: Optimiser, points: Tensor, rate: float, steps: int) -> Tensor:
    for _ in range(steps):
        points = points + optimiser.move(slopes_of(points), rate)
    return points


def torch_walk(make: type[torch.optim.Optimizer], points: Tensor, steps: int, **settings: float | bool) -> Tensor:
    """Let torch's own optimiser walk each row alone."""
    rows = []
    for row in points:
        leaf = row[None].clone().requires_grad_()
        optimiser = make([leaf], **settings)  # type: ignore[arg-type]

        def closure(leaf: Tensor = leaf) -> float:
            leaf.grad = slopes_of(leaf)
            return float(bowl(leaf.detach()))

        for _ in range(steps):
            optimiser.step(closure)
        rows.append(leaf.detach()[0])
    return torch.stack(rows)


START = torch.randn(3, 5, generator=generator(0), dtype=torch.float64)


def test_adam_and_momentum_are_those_of_torch() -> None:
    torch.testing.assert_close(walk(Adam(START), START, 0.1, 30), torch_walk(torch.optim.Adam, START, 30, lr=0.1))
    expected = torch_walk(torch.optim.SGD, START, 30, lr=0.01, momentum=0.9, nesterov=True)
    torch.testing.assert_close(walk(Nesterov(START), START, 0.01, 30), expected)


def test_limited_memory_takes_the_path_of_torch() -> None:
    expected = torch_walk(torch.optim.LBFGS, START, 1, lr=0.5, max_iter=8, tolerance_change=0.0, tolerance_grad=0.0)
    torch.testing.assert_close(walk(LimitedMemory(START), START, 0.5, 8), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("make", [Adam, Nesterov, LimitedMemory])
def test_dropping_a_row_does_not_disturb_the_others(make: type[Optimiser]) -> None:
    whole = walk(make(START), START, 0.01, 6)
    optimiser = make(START)
    half = walk(optimiser, START, 0.01, 3)
    rows = torch.tensor([0, 2])
    optimiser.keep(rows)
    torch.testing.assert_close(walk(optimiser, half[rows], 0.01, 3), whole[rows])


def test_only_the_method_with_a_memory_of_slopes_takes_several_gradients_a_step() -> None:
    assert [make.iterations for make in (Adam, Nesterov, LimitedMemory)] == [1, 1, 20]
    assert [make.one_distance for make in (Adam, Nesterov, LimitedMemory)] == [False, False, True]
