from gradveil.experiments.paper.cells import Cell
from gradveil.experiments.paper.published import TABLE_5, P, R
from gradveil.experiments.paper.text import (
    NO_CONTROL,
    NOT_RUN,
    write_count,
    write_excess,
    write_interval,
    write_mean,
    write_percent,
    write_psnr,
    write_share,
    write_value,
)
from tests.experiments.paper.made_up import row

EMPTY = Cell({}, 0, 12)


def make_cell(count: int) -> Cell:
    return Cell({(0, image): row(image, 10.0 + image, 9.0, 3.0) for image in range(count)}, 1, 12)


def test_a_cell_that_was_not_run_says_so() -> None:
    assert write_psnr(EMPTY) == write_mean(EMPTY, "gain") == write_interval(None) == NOT_RUN
    assert write_share(EMPTY, "identified") == write_percent(None) == NOT_RUN
    assert write_count(EMPTY) == "0 of 12"


def test_few_images_have_no_spread() -> None:
    assert write_psnr(make_cell(2)) == "10.50"
    assert write_psnr(make_cell(6)) == "12.50 ± 1.87"
    assert "±" not in write_interval(make_cell(5).interval("gain"))
    assert "±" in write_interval(make_cell(6).interval("gain"))


def test_counts_and_shares() -> None:
    assert write_count(make_cell(4)) == "4 of 12 (1 failed)"
    assert write_count(make_cell(11)) == "11 (1 failed)"
    assert write_share(make_cell(4), "identified") == "4 of 4 (40–100%, chance 5%)"
    assert write_mean(make_cell(1), "gain") == "1.00"


def test_what_an_attack_finds_is_compared_with_wrong_updates_where_there_are_any() -> None:
    cell = make_cell(4)
    assert write_excess(cell) == "+3.0"
    for image in range(4):
        cell.rows[0, image]["control"] = 3.5
    assert write_excess(cell) == "-0.5"
    for image in range(4):
        cell.rows[0, image]["control"] = None
    assert write_excess(cell) == NO_CONTROL
    assert write_excess(EMPTY) == NOT_RUN


def test_what_a_paper_does_not_have_is_a_dash() -> None:
    assert write_value(TABLE_5["none"], P) == "–"
    assert write_value(TABLE_5["none"], R) == "8.96 ± 1.25 / 61.44"
