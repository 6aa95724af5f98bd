"""The ranking by either rule, the hybrid, the front."""

import math

import pytest
import torch

from gradveil.search import ScoredCandidate, find_front, make_hybrid
from gradveil.search.select import ALPHA, make_criterion, order


def scored(policy: str, privacy: float, accuracy: float | None) -> ScoredCandidate:
    return ScoredCandidate(policy, policy, (policy,), (privacy, privacy), True, accuracy, "kept")


def test_the_mean_ranks_unless_asked_otherwise() -> None:
    values = torch.tensor([[0.2, 0.3], [0.1, 0.9], [0.3, 0.3]], dtype=torch.float64)
    assert order(make_criterion("mean", values).of_values(values).tolist()) == [0, 2, 1]


def test_the_journal_versions_rule() -> None:
    values = torch.tensor([[0.0, 0.59], [0.1, 0.9], [0.3, 0.3], [0.5, 0.5]], dtype=torch.float64)
    judged = make_criterion("mean-variance", values).of_values(values)
    means, variances = values.mean(1), values.var(1)
    expected = ALPHA * (means - means.min()) / (means.max() - means.min())
    expected += (1 - ALPHA) * (variances - variances.min()) / (variances.max() - variances.min())
    assert torch.allclose(judged, expected)
    assert ALPHA == 0.7
    assert order(judged.tolist())[0] == 2  # a little less private on average, but on every image alike


def test_candidates_that_are_all_alike_have_a_criterion() -> None:
    values = torch.full((3, 2), 0.5, dtype=torch.float64)
    assert make_criterion("mean-variance", values).of_values(values).tolist() == [0.0, 0.0, 0.0]


def test_equal_values_stay_in_order() -> None:
    assert order([0.5, 0.1, 0.5, 0.1]) == [1, 3, 0, 2]


@pytest.mark.parametrize(
    ("ranked", "hybrid"),
    [
        (["3-1-7", "43-18-18"], "3-1-7+43-18-18"),
        (["3-1-7", "1-2", "7-9", "4-5", "6"], "3-1-7+4-5"),
        (["42-28-42", "14-48-48", "3-4"], "42-28-42+3-4"),  # 42 and 48 are the same function
        (["3", "3-1"], "3"),
    ],
)
def test_the_hybrid_has_nothing_in_common(ranked: list[str], hybrid: str) -> None:
    assert str(make_hybrid(ranked)) == hybrid


def test_nothing_on_the_front_is_beaten() -> None:
    candidates = [scored(str(place), place * 7 % 10, place * 3 % 10) for place in range(10)]
    others = [scored("10", 0.0, None), scored("11", math.nan, 5.0), scored("12", -1.0, -math.inf)]
    front = find_front([*candidates, *others])
    for one in candidates:
        beaten = any(
            other.mean <= one.mean and (other.accuracy_score or 0) >= (one.accuracy_score or 0)
            for other in candidates
            if other != one
        )
        assert (one in front) == (not beaten)
    assert len(front) == sum(one in front for one in candidates)
    assert front == sorted(front, key=lambda one: one.mean)
