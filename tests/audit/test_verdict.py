"""The verdict says what the figures allow, and no more."""

from dataclasses import replace

import pytest

from gradveil.audit import Cell, Outcome, Rule, Summary, headline, judge
from gradveil.audit.verdict import confirm_rows, decide, share_test
from tests.audit.test_summary import make_cell

RULE = Rule()


def outcome_of(cell: Cell, *others: Cell) -> Summary:
    return judge([cell, *others], RULE, "diagnostic").summaries[0]


@pytest.mark.parametrize(
    ("advantages", "failed", "outcome"),
    [
        ([8.0] * 8, 0, "leaks"),
        ([2.0] * 8, 0, "leaks"),
        ([-2.0] * 7 + [9.0], 0, "some"),
        ([-2.0] * 7 + [4.0], 0, "undecided"),
        ([-2.0] * 40, 0, "none-found"),
        ([-2.0] * 32, 0, "undecided"),
        ([-2.0] * 40, 1, "undecided"),
        ([0.9] * 20 + [1.0] * 20, 0, "none-found"),
        ([], 3, "untrusted"),
    ],
)
def test_outcomes(advantages: list[float], failed: int, outcome: Outcome) -> None:
    summary = outcome_of(make_cell(advantages, failed=failed))
    assert summary.outcome == outcome
    assert summary.reason


def test_a_large_mean_forbids_to_say_that_no_leak_was_found() -> None:
    quiet = make_cell([-2.0] * 40)
    assert outcome_of(quiet).outcome == "none-found"
    loud = replace(quiet, rows=tuple(replace(row, advantage_original=1.4) for row in quiet.rows))
    assert outcome_of(loud).outcome == "undecided"


def test_the_answer_says_after_how_many_images_it_was_certain() -> None:
    test = share_test(RULE, 1)
    assert decide(make_cell([8.0] * 8), test) == ("above", 2)
    assert decide(make_cell([-2.0] * 40), test) == ("below", 33)
    assert decide(make_cell([-2.0] * 8), test) == (None, None)
    assert decide(make_cell([8.0] * 8), share_test(RULE, 12)) == ("above", 3)
    assert outcome_of(make_cell([8.0] * 8)).decided_after == 2


def test_holm_counts_the_images_of_all_cells() -> None:
    """One image with p = 0.001 stands out among eight, not among two hundred."""
    cell = make_cell([-2.0] * 7 + [4.0])
    cell = replace(cell, rows=(*cell.rows[:7], replace(cell.rows[7], p_value=0.001)))
    assert outcome_of(cell).outcome == "some"
    others = [make_cell([-2.0] * 8, arm=f"gaussian:{number}") for number in range(24)]
    assert outcome_of(cell, *others).outcome == "undecided"


def test_a_hit_that_another_attack_seed_does_not_find_does_not_count() -> None:
    cell = make_cell([-2.0] * 7 + [9.0])
    assert outcome_of(confirm_rows(cell, {7: True})).hits == (7,)
    refuted = outcome_of(confirm_rows(cell, {7: False}))
    assert (refuted.outcome, refuted.hits) == ("undecided", ())


def test_an_attack_that_did_not_converge_is_not_trusted() -> None:
    cell = make_cell([-2.0] * 40, match_rebuilt=0.8)
    summary = outcome_of(cell)
    assert summary.outcome == "untrusted"
    assert "did not converge" in summary.reason
    assert outcome_of(make_cell([8.0] * 8, match_rebuilt=0.8)).outcome == "leaks"


def test_images_without_a_control_are_not_trusted() -> None:
    cell = make_cell([8.0] * 8, reached=None, limit=None, p_value=None)
    assert outcome_of(cell).outcome == "untrusted"


def test_the_silence_of_a_defended_arm_needs_an_attack_that_works_without_it() -> None:
    quiet = make_cell([-2.0] * 40, arm="gaussian:1")
    assert outcome_of(quiet, make_cell([8.0] * 8)).outcome == "none-found"
    assert outcome_of(quiet, make_cell([-2.0] * 40)).outcome == "untrusted"
    alone = outcome_of(quiet)
    assert alone.outcome == "none-found"
    assert "No arm without a defence" in alone.reason


def test_the_definition_weighs_the_cost_in_accuracy() -> None:
    cells = [make_cell([8.0] * 8), make_cell([-2.0] * 40, arm="gaussian:1")]
    cheap = judge(cells, RULE, "diagnostic", {"none": 0.80, "gaussian:1": 0.78}).summaries[1]
    dear = judge(cells, RULE, "diagnostic", {"none": 0.80, "gaussian:1": 0.70}).summaries[1]
    assert (cheap.definition, dear.definition) == ("met", "not met")
    assert dear.accuracy_cost == pytest.approx(0.1)
    assert judge(cells, RULE, "diagnostic").summaries[1].definition == "undecided"


def test_no_leak_is_never_worded_as_private() -> None:
    quiet, leaking = outcome_of(make_cell([-2.0] * 40)), outcome_of(make_cell([8.0] * 8))
    undecided = outcome_of(make_cell([-2.0] * 8))
    assert "no proof of privacy" in headline([quiet])
    assert "in 1 of 2" in headline([quiet, leaking])
    assert "cannot tell" in headline([quiet, undecided])
    assert "leak:" not in headline([undecided])


def test_the_worst_outcome_is_that_of_the_audit() -> None:
    verdict = judge([make_cell([-2.0] * 40, arm="gaussian:1"), make_cell([8.0] * 8)], RULE, "diagnostic")
    assert verdict.outcome == "leaks"
    assert verdict.expected_false_findings == pytest.approx(0.1)
