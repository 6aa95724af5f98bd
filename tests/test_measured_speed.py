"""The page on what a step costs says what its journal says."""

from benchmarks.attack_steps import JOURNAL, PAGE, TIMED, render
from gradveil.journal import Journal


def test_the_page_is_made_of_the_journal() -> None:
    lines = Journal(JOURNAL).read()
    assert [line["model"] for line in lines] == list(TIMED)
    assert PAGE.read_text() == render(lines)
