"""The page that helps to choose a defence says what the journals hold."""

import pytest

from gradveil.experiments.defence_tables import CONTROL, PHASES, ArmLine, make_lines
from gradveil.experiments.defences import PARTS
from scripts import defence_figures as figures
from scripts.which_defence import CHEAP, END, PAGE, PRIVATE, START, make_block, make_reading, make_table, replace_block


def test_the_page_holds_what_the_command_prints() -> None:
    text = PAGE.read_text()
    assert replace_block(text, make_block()) == text


def test_a_block_is_replaced_between_its_markers_only() -> None:
    assert replace_block(f"a\n{START}\nold\n{END}\nb\n", ["new"]) == f"a\n{START}\n\nnew\n\n{END}\nb\n"


def test_whatever_costs_little_leaked() -> None:
    lines = make_lines(list(PARTS["bundled"]()), figures.read("defences/journal.jsonl"))
    cheap = [line.arm for line in lines if isinstance(line, ArmLine) and figures.points(line.arm) < CHEAP]
    leaking = [arm for arm in cheap if "leak" in {figures.arm_line(arm).figures(phase).finding for phase in PHASES}]
    assert len(cheap) > len(PHASES)
    assert cheap == leaking
    assert f"less than {CHEAP} points" in make_reading()[0]


def test_only_dp_sgd_has_rounds_in_which_nothing_was_reached() -> None:
    quiet = [line for line in make_table() if "0, 0 and 0 of" in line]
    assert [line.split("|")[2].strip() for line in quiet] == [f"`{PRIVATE}`"]


def test_figures_of_an_earlier_audit_are_marked_and_no_others() -> None:
    assert figures.cost("prune:99").endswith(", v1")
    assert figures.finding(CONTROL).endswith("n = 12, v1")
    assert "v1" not in figures.reached("prune:99") + figures.picked("crop-flip", "learned")


def test_versions_are_not_mixed() -> None:
    with pytest.raises(SystemExit, match="several versions"):
        figures.mark([{"audit_version": 1}, {"audit_version": 3}])


def test_nothing_is_called_private() -> None:
    page = PAGE.read_text().lower()
    assert "is private" not in page
    assert "no leak found at this strength" not in "\n".join(make_block()).lower()
