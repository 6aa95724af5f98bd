"""The most that any reconstruction can succeed, whatever the attack."""

import math
from statistics import NormalDist

CHANCE = 0.01
"""The probability of success without a release for which bounds are printed."""


def success_bound(noise: float, chance: float = CHANCE) -> float:
    """Bound the probability that any attacker rebuilds the record behind one release with Gaussian noise.

    `noise` is the standard deviation divided by the distance between two neighbours, at sampling rate 1. `chance` is
    the probability of the same success for someone who did not see the release: the bound holds for every measure of
    success, every prior and every attack. It is Φ(Φ⁻¹(chance) + 1/noise) (Hayes et al., 2023; Kaissis et al., 2023).

    >>> round(success_bound(1.0), 3)
    0.092
    """
    if noise == 0:
        return 1.0
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(chance) + 1 / noise) if 0 < chance < 1 else math.ceil(chance)


def pure_success_bound(epsilon: float, chance: float = CHANCE) -> float:
    """Bound the same probability for a release that is ε-differentially private with δ = 0.

    >>> pure_success_bound(0.0), round(pure_success_bound(1.0), 4), pure_success_bound(1000.0)
    (0.01, 0.0272, 1.0)
    """
    return min(1 - math.exp(-epsilon) * (1 - chance), chance * math.exp(min(epsilon, 700.0)))
