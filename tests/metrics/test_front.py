"""The Pareto front."""

import math

from hypothesis import given
from hypothesis import strategies as st

from gradveil.metrics import pareto_front

Pair = tuple[float, float]
pairs = st.lists(st.tuples(st.integers(0, 6).map(float), st.integers(0, 6).map(float)), max_size=12)


def front_of(choices: list[Pair]) -> list[Pair]:
    return pareto_front(choices, cost=lambda pair: pair[0], value=lambda pair: pair[1])


def beats(first: Pair, second: Pair) -> bool:
    """Tell whether the first is as good in both ways and better in one."""
    return first[0] <= second[0] and first[1] >= second[1] and first != second


@given(pairs)
def test_the_front_is_what_no_other_choice_beats(choices: list[Pair]) -> None:
    expected = {choice for choice in choices if not any(beats(other, choice) for other in choices)}
    front = front_of(choices)
    assert set(front) == expected
    assert len(front) == len(expected)
    assert front == sorted(front)


def test_of_equal_choices_the_first_is_kept() -> None:
    named = [("a", 1.0, 2.0), ("b", 1.0, 2.0)]
    assert pareto_front(named, cost=lambda row: row[1], value=lambda row: row[2]) == [("a", 1.0, 2.0)]


def test_choices_that_are_not_finite_are_left_out() -> None:
    assert front_of([(math.nan, 9.0), (1.0, math.inf), (-math.inf, 1.0), (2.0, 3.0)]) == [(2.0, 3.0)]
    assert front_of([]) == []
