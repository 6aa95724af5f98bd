"""What a few scores let one believe about the rest: who may still be among the best.

The model is that of an empirical Bayes analysis of a two-way layout. S_pri of candidate c on image i is the
candidate's mean, an effect of the image that is common to all candidates (they are scored on the same images from the
same start points), and an error. Errors are taken as normal, with a variance of each candidate's own that is drawn
towards that of all. What counts is the mean over all images of the search: these are finitely many and drawn without
replacement, so nothing remains uncertain once all are seen. Means are taken as drawn from one normal distribution,
whose width is estimated in the first round.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.search.select import Criterion, variance

WORLDS = 400
"""Draws of all means at once, from which the place of the last one to keep is taken."""
TOGETHER = 20
NARROWEST = 0.1
TINY = 1e-24
PRIOR_DEGREES = 4
"""As many images as the variance of all candidates counts for in that of one."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What is believed of the criterion of each candidate: normal, float64 candidates."""

    centres: Tensor
    deviations: Tensor

    def chances(self, keep: int, qualifying: Tensor, source: torch.Generator) -> Tensor:
        """Compute the chance of each candidate to be among the `keep` best of those that qualify.

        `qualifying` is the chance of each to qualify. In each of many worlds the `keep`-th best of the others is found;
        how probably a candidate lies below it is then computed, not counted, so that small chances are not lost.
        """
        if len(qualifying) <= keep:
            return qualifying.clone()
        total = torch.zeros_like(self.centres)
        for _ in range(WORLDS // TOGETHER):
            noise = torch.randn(TOGETHER, len(qualifying), generator=source, dtype=torch.float64)
            drawn = torch.rand(TOGETHER, len(qualifying), generator=source, dtype=torch.float64)
            worlds = torch.where(drawn < qualifying, self.centres + self.deviations * noise, torch.inf)
            last, next_one = (worlds.kthvalue(place, keepdim=True).values for place in (keep, keep + 1))
            bar = torch.where(worlds <= last, next_one, last)
            total += torch.special.ndtr((bar - self.centres) / self.deviations.clamp_min(TINY)).sum(0)
        return qualifying * total / WORLDS


def weigh(
    values: Tensor, images: int, criterion: Criterion, spread: float | None, rule_error: float
) -> tuple[Beliefs, float]:
    """Turn S_pri of the images seen so far, float64 candidates×images, into beliefs about the mean over all `images`.

    `spread` is the standard deviation of the candidates' true means, estimated here unless given; it is returned, too.
    `rule_error` is that of the quadrature.
    """
    seen = values.shape[1]
    means = values.mean(1)
    errors = shrink(residual_variances(values), seen - 1)
    # The last factor makes up for the variance being an estimate itself (Student's t has so much more spread).
    degrees = PRIOR_DEGREES + seen - 1
    doubt = errors / seen * (1 - seen / images) * degrees / (degrees - 2) + rule_error**2
    if spread is None:
        # Never so narrow that nothing could be told apart: the estimate may come out at zero.
        spread = math.sqrt(max(float(means.var(correction=0) - doubt.mean()), NARROWEST * float(doubt.mean())))
    trust = spread**2 / (spread**2 + doubt).clamp_min(TINY)
    centres, deviations = trust * means + (1 - trust) * means.mean(), (trust * doubt).sqrt()
    return judge(centres, deviations, values, images, criterion), spread


def judge(centres: Tensor, deviations: Tensor, values: Tensor, images: int, criterion: Criterion) -> Beliefs:
    """Carry beliefs about means over to the criterion, which may count the variance over images too."""
    if criterion.means is None or criterion.variances is None:
        return Beliefs(centres, deviations)
    seen = values.shape[1]
    spreads = shrink(variance(values), seen - 1)
    doubt = spreads * math.sqrt(2 / (PRIOR_DEGREES + seen - 1) * (1 - seen / images))
    middle = criterion.value(centres, spreads)
    by_mean = criterion.value(centres + deviations, spreads) - middle
    by_variance = criterion.value(centres, spreads + doubt) - middle
    return Beliefs(middle, (by_mean**2 + by_variance**2).sqrt())


def residual_variances(values: Tensor) -> Tensor:
    """Estimate the variance of each candidate's errors, with the images' common effects removed."""
    candidates, seen = values.shape
    rest = values - values.mean(1, keepdim=True) - values.mean(0) + values.mean()
    share = 1 - 1 / candidates if candidates > 1 else 1.0
    return rest.square().sum(1) / (max(1, seen - 1) * share)


def shrink(variances: Tensor, degrees: int) -> Tensor:
    """Draw variances towards their mean, as if that had been seen on a few images more."""
    return (PRIOR_DEGREES * variances.mean() + degrees * variances) / (PRIOR_DEGREES + degrees)


def choose_rejected(chances: Tensor, budget: float, spared: set[int]) -> list[int]:
    """Choose the least promising candidates, as many as together lose at most `budget` of the best on average."""
    rejected, lost = [], 0.0
    for place in chances.argsort(stable=True).tolist():
        lost += float(chances[place])
        if lost > budget:
            break
        if place not in spared:
            rejected.append(place)
    return sorted(rejected)
