"""Sentences of the page."""

from gradveil.reports.audit_record import make_cells
from gradveil.reports.audit_words import OUTCOME_WORDS, say_false_findings, say_guarantee, worst_cell
from tests.reports.audit_records import make_record


def test_all_five_outcomes_have_words_and_different_marks() -> None:
    assert list(OUTCOME_WORDS) == ["leaks", "some", "none-found", "undecided", "untrusted"]
    assert len({outcome.mark for outcome in OUTCOME_WORDS.values()}) == 5


def test_the_page_leads_with_the_worst_cell() -> None:
    cells = make_cells(make_record())
    lead = worst_cell(cells)
    assert lead.outcome == "leaks"
    assert worst_cell(cells[2:4]).outcome == "undecided", "an open question is worse news than no leak found"


def test_a_guarantee_without_epsilon_says_why() -> None:
    assert say_guarantee(None, "x") is None
    assert say_guarantee({"epsilon": None, "remark": ""}, "Release") == "Release: no ε can be stated (no guarantee)."
    assert say_guarantee({"epsilon": 1.0, "delta": 1e-5, "steps": 1}, "R") == "R: ε = 1 at δ = 1e-5, over 1 step."


def test_an_unknown_number_of_false_findings_is_not_zero() -> None:
    assert say_false_findings(None) == "Expected number of false findings in this audit: not known."
