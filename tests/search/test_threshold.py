"""T_acc: what can be written, what it means, and when it is out of reach."""

import math

import pytest

from gradveil.errors import SettingsError
from gradveil.search.threshold import Threshold, describe_scores, is_out_of_reach

SCORES = [-1.0, -1.5, -2.0, -3.0]


@pytest.mark.parametrize(
    ("text", "least", "qualify"),
    [("-1.5", -1.5, 2), ("q0.5", -1.5, 2), ("50%", -1.5, 2), ("25%", -2.0, 3), ("0%", -3.0, 4), ("none", -math.inf, 4)],
)
def test_what_is_written_is_what_is_meant(text: str, least: float, qualify: int) -> None:
    found = Threshold.parse(text).over(SCORES)
    assert found == least
    assert sum(score >= found for score in SCORES) == qualify


@pytest.mark.parametrize("text", ["", "high", "q1", "100%", "-5%", "nan", "inf", "q", "1.2.3"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="accuracy threshold"):
        Threshold.parse(text)


def test_a_threshold_proves_out_of_reach() -> None:
    assert not is_out_of_reach(passed=10, tried=100, wanted=10, most=300)
    assert not is_out_of_reach(passed=4, tried=100, wanted=10, most=300)
    assert is_out_of_reach(passed=0, tried=100, wanted=10, most=300)
    assert not is_out_of_reach(passed=0, tried=100, wanted=2, most=300)
    assert is_out_of_reach(passed=9, tried=300, wanted=10, most=300)
    assert not is_out_of_reach(passed=5, tried=5, wanted=10, most=15)


def test_the_distribution_is_put_into_words() -> None:
    assert describe_scores(SCORES) == "lowest -3.000, 25% -2.000, median -1.500, 75% -1.500, highest -1.000"
    assert describe_scores([]) == "none was scored"
