"""The study of the attacks: cells, budget, journal, tables."""

from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from gradveil import data
from gradveil.attacks import ATTACKS, Analytic, Ensemble, GradientMatching
from gradveil.experiments.attack_cells import GREY, PARTS, Cell
from gradveil.experiments.attack_comparisons import gains, paired, render_models, winners
from gradveil.experiments.attack_sheets import draw_sheets
from gradveil.experiments.attack_tables import Line, make_lines, make_paths, render_markdown
from gradveil.experiments.attacks import Study, mean_runs, with_budget

CELLS = [
    Cell("trial", GREY, "lenet-relu", "init", "none", "fast", (0, 1), 3),
    Cell("trial", GREY, "lenet-relu", "init", "policy:3-1-7,no-base", "policy-aware", (0,), 3),
]


def silent(what: str, done: int, total: int) -> None:
    """Report to nobody."""


def test_every_cell_names_what_exists() -> None:
    for part, make in PARTS.items():
        cells = list(make())
        assert cells
        assert len({str(cell) for cell in cells}) == len(cells)
        assert all(cell.part == part and cell.attack in ATTACKS for cell in cells)


def test_a_budget_counts_gradients() -> None:
    halved = GradientMatching(restarts=4, prune=(0.25, 0.5))
    assert mean_runs(halved) == pytest.approx(4 * 0.25 + 2 * 0.25 + 1 * 0.5)
    shortened = with_budget(halved, 200)
    assert isinstance(shortened, GradientMatching)
    assert shortened.steps == 100
    slow = with_budget(ATTACKS["dlg"], 400)
    assert isinstance(slow, GradientMatching)
    assert slow.steps == 20
    assert with_budget(ATTACKS["fast"], None) is ATTACKS["fast"]
    blind = GradientMatching(knows_policy=True)
    parts = with_budget(Ensemble({"a": GradientMatching(), "b": GradientMatching(), "c": Analytic(), "d": blind}), 100)
    assert isinstance(parts, Ensemble)
    assert [member.steps for member in parts.members.values() if isinstance(member, GradientMatching)] == [50] * 3


def test_a_stopped_study_goes_on_and_tells_what_is_missing(tmp_path: Path) -> None:
    study = Study(tmp_path, {GREY: data.load("fashion-mnist-sample")})
    study.run(CELLS[:1], silent)
    first = study.journal.read()
    table = render_markdown({"trial": make_lines(CELLS, first)})
    assert "| fast | 2 |" in table
    assert "| policy-aware | 0 of 1 | not run |" in table
    study.run(CELLS, silent)
    both = study.journal.read()
    assert both[:1] == first
    assert [entry["cell"]["attack"] for entry in both] == ["fast", "policy-aware"]
    assert all(row["status"] == "ok" for entry in both for row in entry["rows"])
    assert [name for name, _ in draw_sheets(tmp_path, CELLS)] == [
        "sample_lenet-relu_init_none.png",
        "sample_lenet-relu_init_policy-3-1-7-no-base.png",
    ]
    assert "not run" not in render_markdown({"trial": make_lines(CELLS, both)})
    assert "| sample | lenet-relu | init | 10.0 |" in render_models(both)
    elsewhere = [replace(cell, part="another") for cell in CELLS]
    study.run(elsewhere, silent)
    assert study.journal.read() == both, "another part that asks the same gets what is there"
    assert "not run" not in render_markdown({"another": make_lines(elsewhere, both)})
    paths = make_paths(CELLS[:1], both)[GREY, "lenet-relu", "init", "none"]["fast"]
    rows = both[0]["rows"]
    assert paths[-1] == pytest.approx((rows[0]["seconds"], mean(row["psnr_transformed"] for row in rows)), rel=1e-4)
    assert paths[0][1] < paths[-1][1]


def test_an_attack_that_cannot_be_used_is_said_so(tmp_path: Path) -> None:
    study = Study(tmp_path, {GREY: data.load("fashion-mnist-sample")})
    cells = [replace(CELLS[0], attack="bn-prior"), CELLS[0]]
    study.run(cells, silent)
    assert "batch normalisation" in study.journal.read()[0]["refused"]
    table = render_markdown({"trial": make_lines(cells, study.journal.read())})
    assert "| bn-prior | 0 of 2 | cannot be used |" in table
    assert "| fast | 2 |" in table


def line(attack: str, scores: dict[int, float | None], seconds: float = 1.0) -> Line:
    """Make the line of an attack with these advantages; None is a failed image."""
    rows = [
        {
            "image": image,
            "status": "failed" if score is None else "ok",
            "psnr_transformed": score,
            "advantage_transformed": score,
            "seconds": seconds,
        }
        for image, score in scores.items()
    ]
    return Line(("part", GREY, "lenet", "init", "none", attack), tuple(rows), len(rows))


def test_attacks_are_compared_on_the_images_that_both_have() -> None:
    slow, quick = line("slow", {0: 10.0, 1: 20.0, 2: 90.0}, 8.0), line("quick", {0: 11.0, 1: 23.0, 2: None}, 2.0)
    (row,) = gains([slow, quick], ("slow", ["quick", "missing"], "psnr_transformed"))
    assert row[-3:] == ["+2.0 ± 12.7", "2", "0.25"]
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_the_winner_is_the_best_on_shared_images() -> None:
    lines = [line("many", {0: 1.0, 1: 3.0, 2: 50.0}), line("few", {0: 4.0, 1: 4.0}), line("weak", {0: 0.0, 1: 0.0})]
    (row,) = winners(lines, ["many"])
    assert row[3:] == ["`many`", "+18.0 ± 68.9", "3", "`few`", "+4.0 ± 0.0", "`many` +2.0 ± 12.7", "2"]
    assert list(winners([line("failed", {0: None})], ["failed"])) == []
