"""The ranking by either rule, the hybrid, the front."""

import math

import pytest
import torch

from gradveil.search.select import ALPHA, Trial, find_front, make_criterion, make_hybrid, order


def trial(policy: str, privacy: float, accuracy: float | None) -> Trial:
    return Trial(policy, policy, (policy,), (privacy, privacy), True, accuracy, "kept")


def test_the_mean_ranks_unless_asked_otherwise() -> None:
    values = torch.tensor([[0.2, 0.3], [0.1, 0.9], [0.3, 0.3]], dtype=torch.float64)
    assert order(make_criterion("mean", values).of_values(values).tolist()) == [0, 2, 1]


def test_the_journal_versions_rule() -> None:
    values = torch.tensor([[0.0, 0.59], [0.1, 0.9], [0.3, 0.3], [0.5, 0.5]], dtype=torch.float64)
    found = make_criterion("mean-variance", values).of_values(values)
    means, variances = values.mean(1), values.var(1)
    expected = ALPHA * (means - means.min()) / (means.max() - means.min())
    expected += (1 - ALPHA) * (variances - variances.min()) / (variances.max() - variances.min())
    assert torch.allclose(found, expected)
    assert ALPHA == 0.7
    assert order(found.tolist())[0] == 2  # a little less private on average, but on every image alike


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
    trials = [trial(str(place), place * 7 % 10, place * 3 % 10) for place in range(10)]
    front = find_front([*trials, trial("10", 0.0, None), trial("11", math.nan, 5.0), trial("12", -1.0, -math.inf)])
    for one in trials:
        beaten = any(
            other.mean <= one.mean and (other.accuracy or 0) >= (one.accuracy or 0) for other in trials if other != one
        )
        assert (one in front) == (not beaten)
    assert len(front) == sum(one in front for one in trials)
    assert front == sorted(front, key=lambda one: one.mean)


def test_a_record_has_what_others_read() -> None:
    record = trial("3-1-7", 0.25, -1.5).to_record()
    assert (record["policy"], record["privacy"], record["accuracy"], record["images"]) == ("3-1-7", 0.25, -1.5, 2)
