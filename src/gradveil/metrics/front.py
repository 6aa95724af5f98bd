"""The Pareto front of choices that have a cost and a value."""

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

Choice = TypeVar("Choice")


def pareto_front(
    choices: Iterable[Choice], cost: Callable[[Choice], float], value: Callable[[Choice], float]
) -> list[Choice]:
    """Keep the choices that no other beats in one way and equals or beats in the other, the cheapest first.

    A choice whose cost or value is not finite is left out.

    >>> pareto_front([(3, 0.9), (1, 0.8), (2, 0.7)], cost=lambda pair: pair[0], value=lambda pair: pair[1])
    [(1, 0.8), (3, 0.9)]
    """
    finite = [choice for choice in choices if math.isfinite(cost(choice)) and math.isfinite(value(choice))]
    front: list[Choice] = []
    for choice in sorted(finite, key=lambda choice: (cost(choice), -value(choice))):
        if not front or value(choice) > value(front[-1]):
            front.append(choice)
    return front
