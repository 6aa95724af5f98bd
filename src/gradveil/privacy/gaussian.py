"""ε of Gaussian noise: of one release, of several, and of several on random samples."""

import math
import warnings

from scipy.optimize import brentq
from scipy.special import erfcx, ndtr, ndtri

from gradveil.errors import import_extra


def gaussian_epsilon(noise: float, delta: float, rounds: int = 1) -> float:
    """Solve δ(ε) = `delta` exactly for `rounds` releases with Gaussian noise (Balle & Wang, 2018, theorem 8).

    `noise` is the standard deviation divided by the distance between two neighbours. With μ = √rounds / noise and
    a = μ/2 − ε/μ the equation is δ = Φ(a) − φ(a)·Φ(a − μ)/φ(a − μ), which neither overflows nor cancels for large ε.

    >>> round(gaussian_epsilon(1.0, 1e-5), 3)
    4.377
    """
    reach = math.sqrt(rounds) / noise

    def excess(a: float) -> float:
        return delta_at(a, reach) - delta

    most = min(reach / 2, 10.0)  # ε is at least 0; and δ(10) is 1 up to 1e-23 if μ/2 is larger
    if excess(most) <= 0:
        return 0.0
    least = ndtri(delta)  # a is at least this, because δ(a) < Φ(a)
    # Below 1e-9 the two terms of δ cancel; the upper bound on ε is then at most 4e-8.
    a = least if reach < 1e-9 else brentq(excess, least - 1e-6, most, xtol=1e-14)
    return float(reach * (reach / 2 - a))


def gaussian_delta(noise: float, epsilon: float) -> float:
    """Compute the smallest δ for which one release with Gaussian noise is (ε, δ)-differentially private."""
    reach = 1 / noise
    return delta_at(reach / 2 - epsilon / reach, reach)


def delta_at(a: float, reach: float) -> float:
    density = math.exp(-a * a / 2) / 2  # φ(a)·√(π/2)
    return float(ndtr(a) - density * erfcx((reach - a) / math.sqrt(2)))


def classic_deviation(sensitivity: float, epsilon: float, delta: float) -> float:
    """Compute the textbook's noise, sensitivity·√(2·ln(1.25/δ))/ε; it is proven for ε < 1 only."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def sampled_epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """Ask Opacus's RDP accountant for ε, which is an upper bound.

    It counts Poisson sampling, and two data sets as neighbours if one has one record more.
    """
    accountant = import_extra("opacus.accountants", "federated").RDPAccountant()
    if steps:
        accountant.history.append((noise, rate, steps))
    with warnings.catch_warnings():
        # That a higher order might give a smaller ε does not make this one wrong.
        warnings.simplefilter("ignore")
        return float(accountant.get_epsilon(delta))


def run_epsilon(noise: float, rate: float, rounds: int, delta: float) -> float:
    """Compute ε of a whole run: exactly without sampling, else the smaller of two upper bounds.

    The second bound ignores sampling. It is the smaller one where the noise is very low.
    """
    unsampled = gaussian_epsilon(noise, delta, rounds)
    return unsampled if rate == 1 else min(unsampled, sampled_epsilon(noise, rate, rounds, delta))
