"""From scores to a choice: the ranking, the hybrid, and the front of what no other policy beats in both scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.metrics import pareto_front
from gradveil.search.outcome import ScoredCandidate
from gradveil.transforms import Policy, PolicySet, parse_policy, share_transforms

ALPHA = 0.7
"""The weight of the mean in the journal version's rule."""
HYBRID = 2
"""The published hybrids have two members."""


@dataclass(frozen=True)
class Criterion:
    """What is minimised: the mean over images or, with ranges, the journal version's mean and variance.

    Both are then min-max normalised by the given ranges and weighed α : 1 − α (Gao et al., TPAMI 2023).
    """

    means: tuple[float, float] | None = None
    variances: tuple[float, float] | None = None

    def value(self, means: Tensor, variances: Tensor) -> Tensor:
        if self.means is None or self.variances is None:
            return means
        return ALPHA * scale(means, self.means) + (1 - ALPHA) * scale(variances, self.variances)

    def of_values(self, values: Tensor) -> Tensor:
        """Judge candidates by S_pri of their images, float64 candidates×images."""
        return self.value(values.mean(1), variance(values))


def scale(values: Tensor, limits: tuple[float, float]) -> Tensor:
    low, high = limits
    return (values - low) / (high - low) if high > low else torch.zeros_like(values)


def variance(values: Tensor) -> Tensor:
    """Take the variance over images; of one image it is 0."""
    rest = values - values.mean(1, keepdim=True)
    return rest.square().sum(1) / max(1, values.shape[1] - 1)


def make_criterion(select: str, values: Tensor) -> Criterion:
    """Make the criterion; the ranges of `mean-variance` are those of the candidates given."""
    if select == "mean":
        return Criterion()
    means, variances = values.mean(1), variance(values)
    return Criterion(
        (float(means.min()), float(means.max())),
        (float(variances.min()), float(variances.max())),
    )


def order(values: Sequence[float]) -> list[int]:
    """List the places from the least value to the greatest; equal ones stay in the order in which they came."""
    return sorted(range(len(values)), key=lambda place: (values[place], place))


def make_hybrid(policies: Sequence[str], members: int = HYBRID) -> PolicySet:
    """Join the best policies that have no transformation in common, under whatever index; `policies` is best first.

    >>> print(make_hybrid(["3-1-7", "3-18", "43-18-18"]))
    3-1-7+43-18-18
    """
    chosen: list[Policy] = []
    for text in policies:
        (policy,) = parse_policy(text).policies
        if len(chosen) < members and not any(in_common(policy, other) for other in chosen):
            chosen.append(policy)
    return PolicySet(tuple(chosen))


def in_common(first: Policy, second: Policy) -> bool:
    shared = share_transforms(first, second)
    return bool(shared.indices or shared.functions)


def find_front(candidates: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
    """Keep the candidates that no other beats in one score and equals or beats in the other, the most private first."""
    scored = [candidate for candidate in candidates if candidate.accuracy_score is not None]
    return pareto_front(scored, cost=lambda one: one.mean, value=lambda one: one.accuracy_score or 0.0)
