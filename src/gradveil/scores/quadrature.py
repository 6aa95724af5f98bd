"""Rules that turn a curve over [0, 1], known at a few nodes, into the area under it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Legendre

from gradveil.errors import SettingsError, UnknownNameError

MAX_NODES = 1001
Nodes = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class Quadrature:
    """Nodes in [0, 1], rising, and their weights; these sum to one."""

    name: str
    nodes: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def gradients(self) -> int:
        """Count the gradients that a score costs: one for each inner node and one for the transformed image.

        At i = 1 the similarity is known, and at i = 0 the gradient does not depend on the policy.
        """
        return 1 + sum(0 < node < 1 for node in self.nodes)


def trapezoid(count: int) -> Nodes:
    """Join `count` equidistant points by straight lines; the papers' code has 21."""
    step = 1 / (count - 1)
    ends = [step / 2]
    return tuple(place / (count - 1) for place in range(count)), tuple(ends + [step] * (count - 2) + ends)


def riemann(count: int) -> Nodes:
    """Take the left sum of `count` terms, as Gao et al. print it (Eq. 7)."""
    return tuple(place / count for place in range(count)), (1 / count,) * count


def gauss(count: int) -> Nodes:
    """Gauss–Legendre: exact on polynomials up to degree 2·count − 1."""
    return interpolatory(Legendre.basis(count).roots())


def radau(count: int) -> Nodes:
    """Gauss–Radau with the node i = 1: exact on polynomials up to degree 2·count − 2."""
    inner = (Legendre.basis(count) - Legendre.basis(count - 1)) // Legendre([-1, 1])
    return interpolatory(np.append(inner.roots(), 1.0))


def lobatto(count: int) -> Nodes:
    """Gauss–Lobatto with the nodes i = 0 and i = 1: exact on polynomials up to degree 2·count − 3."""
    return interpolatory(np.concatenate([[-1.0], Legendre.basis(count - 1).deriv().roots(), [1.0]]))


def interpolatory(roots: np.ndarray) -> Nodes:
    """Weigh nodes in [−1, 1] so that polynomials of lower degree than there are nodes come out exactly."""
    roots = np.sort(roots.real)
    powers = np.polynomial.legendre.legvander(roots, len(roots) - 1).T
    areas = np.zeros(len(roots))
    areas[0] = 1.0  # of the Legendre polynomials, in units of the interval's length: all but the first vanish
    weights = np.linalg.solve(powers, areas)
    return tuple(map(float, (roots + 1) / 2)), tuple(map(float, weights))


RULES: dict[str, tuple[Callable[[int], Nodes], int, int]] = {
    "trapezoid": (trapezoid, 2, MAX_NODES),
    "riemann": (riemann, 1, MAX_NODES),
    "gauss": (gauss, 1, 64),
    "radau": (radau, 1, 64),
    "lobatto": (lobatto, 2, 64),
}
"""How the nodes are made, and the least and greatest number of them."""


def find_quadrature(name: str) -> Quadrature:
    """Turn a name such as `trapezoid-21`, `riemann-20`, `gauss-5`, `radau-4` or `lobatto-5` into its nodes.

    >>> find_quadrature("trapezoid-3")
    Quadrature(name='trapezoid-3', nodes=(0.0, 0.5, 1.0), weights=(0.25, 0.5, 0.25))
    """
    match = re.fullmatch(r"([a-z]+)-([1-9][0-9]{0,3})", name)
    if match is None or match[1] not in RULES:
        raise UnknownNameError("quadrature", name, [f"{rule}-N" for rule in RULES])
    make, least, greatest = RULES[match[1]]
    count = int(match[2])
    if not least <= count <= greatest:
        raise SettingsError(f"quadrature '{name}': {match[1]} takes from {least} to {greatest} nodes")
    return Quadrature(name, *make(count))
