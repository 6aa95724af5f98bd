"""Every rule is exact where it promises to be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.scores import find_quadrature

DEGREES = {"gauss": lambda n: 2 * n - 1, "radau": lambda n: 2 * n - 2, "lobatto": lambda n: 2 * n - 3}


def integrate(name: str, coefficients: list[float]) -> float:
    rule = find_quadrature(name)
    values = [sum(c * node**power for power, c in enumerate(coefficients)) for node in rule.nodes]
    return sum(weight * value for weight, value in zip(rule.weights, values, strict=True))


@given(st.sampled_from(sorted(DEGREES)), st.integers(2, 8), st.data())
def test_gaussian_rules_are_exact_on_polynomials(rule: str, count: int, data: st.DataObject) -> None:
    terms = DEGREES[rule](count) + 1
    coefficients = data.draw(st.lists(st.floats(-5, 5), min_size=terms, max_size=terms))
    area = sum(c / (power + 1) for power, c in enumerate(coefficients))
    assert integrate(f"{rule}-{count}", coefficients) == pytest.approx(area, abs=1e-10)


@pytest.mark.parametrize(("rule", "count"), [("gauss", 4), ("radau", 4), ("lobatto", 5)])
def test_one_degree_more_is_too_much(rule: str, count: int) -> None:
    degree = DEGREES[rule](count) + 1
    coefficients = [0.0] * degree + [1.0]
    assert abs(integrate(f"{rule}-{count}", coefficients) - 1 / (degree + 1)) > 1e-7


@given(st.integers(2, 60), st.floats(-5, 5), st.floats(-5, 5))
def test_the_trapezoid_is_exact_on_lines(count: int, level: float, slope: float) -> None:
    assert integrate(f"trapezoid-{count}", [level, slope]) == pytest.approx(level + slope / 2, abs=1e-12)


def test_the_left_sum_takes_the_beginning_of_each_step() -> None:
    rule = find_quadrature("riemann-4")
    assert rule.nodes == (0.0, 0.25, 0.5, 0.75)
    assert rule.weights == (0.25,) * 4
    assert integrate("riemann-4", [0.0, 1.0]) == pytest.approx(0.375)


def test_the_papers_rule_has_21_points() -> None:
    rule = find_quadrature("trapezoid-21")
    assert rule.nodes == pytest.approx([step / 20 for step in range(21)])
    assert rule.weights == pytest.approx([1 / 40, *[1 / 20] * 19, 1 / 40])


@pytest.mark.parametrize("name", ["trapezoid-9", "riemann-7", "gauss-5", "radau-4", "lobatto-6", "gauss-64"])
def test_nodes_rise_within_the_interval_and_weights_sum_to_one(name: str) -> None:
    rule = find_quadrature(name)
    assert list(rule.nodes) == sorted(set(rule.nodes))
    assert 0 <= rule.nodes[0] < rule.nodes[-1] <= 1
    assert sum(rule.weights) == pytest.approx(1)
    assert min(rule.weights) > 0


@pytest.mark.parametrize(
    ("name", "gradients"), [("trapezoid-21", 20), ("riemann-20", 20), ("gauss-5", 6), ("radau-4", 4), ("lobatto-5", 4)]
)
def test_ends_cost_nothing(name: str, gradients: int) -> None:
    assert find_quadrature(name).gradients == gradients


@pytest.mark.parametrize("rule", ["radau", "lobatto"])
def test_the_known_end_is_a_node(rule: str) -> None:
    assert find_quadrature(f"{rule}-5").nodes[-1] == 1.0


@pytest.mark.parametrize("name", ["simpson-5", "gauss", "gauss-0", "gauss-05", "-5", "gauss-5 ", "trapezoid-99999"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match="choose from gauss-N, lobatto-N"):
        find_quadrature(name)


@pytest.mark.parametrize("name", ["trapezoid-1", "trapezoid-1002", "gauss-65", "lobatto-1"])
def test_too_few_or_too_many_nodes_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="takes from"):
        find_quadrature(name)
