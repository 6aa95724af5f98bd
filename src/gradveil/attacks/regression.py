"""Maps from features to pictures, learnt from examples: ridge regression, and a small network."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional

SHARES = (1e-2, 3e-2, 1e-1, 3e-1, 1.0)
"""Candidates for ridge's λ as a share of the number of examples."""
BLENDS = (0.2, 0.4, 0.6)
"""Candidates for the weight of ridge beside a network."""
PREDICTED = 3.0
BATCH = 128


class Regression(ABC):
    """A map from features N×F to flat pictures N×D."""

    @abstractmethod
    def __call__(self, features: Tensor) -> Tensor:
        """Predict the pictures."""


@final
@dataclass(frozen=True, eq=False)
class Ridge(Regression):
    """A linear map."""

    matrix: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        return features @ self.matrix

    def take(self, outputs: int) -> "Ridge":
        """Keep the first outputs only."""
        return Ridge(self.matrix[:, :outputs])

    def drop(self, outputs: int) -> "Ridge":
        """Leave the first outputs out."""
        return Ridge(self.matrix[:, outputs:])


class Moments:
    """The sums that ridge regression needs; examples are added part by part and not kept."""

    def __init__(self) -> None:
        self.count = 0
        self.square: Tensor | None = None
        self.cross: Tensor | None = None

    def add(self, features: Tensor, targets: Tensor) -> None:
        square, cross = (features.T @ features).double(), (features.T @ targets).double()
        self.square = square if self.square is None else self.square.add_(square)
        self.cross = cross if self.cross is None else self.cross.add_(cross)
        self.count += len(features)

    def solve(self, share: float) -> Ridge:
        """Solve (AᵀA + λI)W = AᵀB for λ = share × examples."""
        assert self.square is not None
        assert self.cross is not None
        damped = self.square + share * self.count * torch.eye(len(self.square), dtype=torch.float64)
        factor, failed = torch.linalg.cholesky_ex(damped.float())
        if int(failed) == 0:
            return Ridge(torch.cholesky_solve(self.cross.float(), factor))
        # Few examples and a small λ: single precision does not see that the matrix is positive.
        return Ridge(torch.cholesky_solve(self.cross, torch.linalg.cholesky(damped)).float())


@final
@dataclass(frozen=True, eq=False)
class Network(Regression):
    """Two hidden layers."""

    layers: nn.Module

    def __call__(self, features: Tensor) -> Tensor:
        with torch.no_grad():
            result: Tensor = self.layers(features)
        return result


@final
@dataclass(frozen=True, eq=False)
class LastColumns(Regression):
    """A map from the last `columns` features alone."""

    columns: int
    inner: Regression

    def __call__(self, features: Tensor) -> Tensor:
        return self.inner(features[:, -self.columns :])


def make_layers(inputs: int, width: int, outputs: int, generator: torch.Generator) -> nn.Sequential:
    """Make a network with He's first weights, drawn from `generator`."""
    with torch.random.fork_rng(devices=[]):  # a layer's own first weights are drawn from the global state
        layers = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)
        )
    with torch.no_grad():
        for layer in layers:
            if isinstance(layer, nn.Linear):
                layer.weight.normal_(0, math.sqrt(2 / layer.in_features), generator=generator)
                layer.bias.zero_()
        # A picture begins at its class's mean.
        list(layers.parameters())[-2].mul_(0.1)
    return layers


@final
@dataclass(frozen=True, eq=False)
class Stacked(Regression):
    """A map of what another one predicts, and of the last `tail` features."""

    first: Regression
    tail: int
    then: Regression

    def __call__(self, features: Tensor) -> Tensor:
        return self.then(stack_inputs(self.first, self.tail, features))


def stack_inputs(first: Regression, tail: int, features: Tensor) -> Tensor:
    """Put the predictions of `first`, brought to about the size of standardised features, before the last features."""
    return torch.cat([PREDICTED * first(features), features[:, features.shape[1] - tail :]], 1)


@final
@dataclass(frozen=True, eq=False)
class Blend(Regression):
    """The mean of two maps; the first has the weight `share`."""

    first: Regression
    second: Regression
    share: float

    def __call__(self, features: Tensor) -> Tensor:
        return self.share * self.first(features) + (1 - self.share) * self.second(features)


def train_network(
    features: Tensor,
    targets: Tensor,
    width: int,
    epochs: int,
    generator: torch.Generator,
    rate: float = 1e-3,
    ties: Tensor | None = None,
) -> Network:
    """Train with AdamW and one cycle of the learning rate on the mean squared error.

    Examples with the same number in `ties` are images that the features do not tell apart: before every epoch but the
    first their targets are paired anew with what the network predicts.
    """
    layers = make_layers(features.shape[1], width, targets.shape[1], generator)
    size = min(BATCH, len(features))
    steps = epochs * (len(features) // size)
    optimiser = torch.optim.AdamW(layers.parameters(), lr=rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=max(2, steps))
    for epoch in range(epochs):
        if epoch and ties is not None:
            targets = pair_ties(Network(layers), features, targets, ties)
        order = torch.randperm(len(features), generator=generator)
        for rows in order[: len(order) // size * size].view(-1, size):
            optimiser.zero_grad()
            torch.autograd.backward(functional.mse_loss(layers(features[rows]), targets[rows]))
            optimiser.step()
            schedule.step()
    return Network(layers.requires_grad_(False))


def pair_ties(regression: Regression, features: Tensor, targets: Tensor, ties: Tensor) -> Tensor:
    """Exchange targets among tied examples so that the squared error is least (the Hungarian method)."""
    order = ties.argsort(stable=True)
    _, sizes = torch.unique_consecutive(ties[order], return_counts=True)
    groups = [rows for rows in torch.split(order, sizes.tolist()) if len(rows) > 1]
    if not groups:
        return targets
    paired, tied = targets.clone(), torch.cat(groups)
    predicted = torch.cat([regression(features[rows]) for rows in torch.split(tied, 1000)])
    for rows, guesses in zip(groups, torch.split(predicted, [len(rows) for rows in groups]), strict=True):
        ours, theirs = linear_sum_assignment(torch.cdist(guesses, targets[rows]).square().numpy())
        paired[rows[ours]] = targets[rows[theirs]]
    return paired


def choose(
    regressions: Sequence[Regression], features: Tensor, base: Tensor, targets: Tensor, ties: Tensor | None = None
) -> tuple[int, float]:
    """Find the place of the map with the best mean PSNR, in dB, of `base` + prediction, on images not learnt from."""
    scored = []
    for one in regressions:
        gaps = targets - base if ties is None else pair_ties(one, features, targets - base, ties)
        error = ((base + one(features)).clamp(0, 1) - base - gaps).square().mean(1)
        scored.append(float(-10 * error.clamp(min=1e-10).log10().mean()))
    best = max(range(len(scored)), key=scored.__getitem__)
    return best, scored[best]
