"""The study of the attacks: how a cell is run, and how a study goes on."""

from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from gradveil import data
from gradveil.audit import AUDIT_VERSION
from gradveil.experiments.attack_cells import GREY, Cell
from gradveil.experiments.attack_comparisons import render_models
from gradveil.experiments.attack_sheets import draw_sheets
from gradveil.experiments.attack_tables import make_lines, make_paths, render_markdown
from gradveil.experiments.attacks import AttackStudy

CELLS = [
    Cell("trial", GREY, "lenet-relu", "init", "none", "fast", (0, 1), 3),
    Cell("trial", GREY, "lenet-relu", "init", "policy:3-1-7,no-base", "policy-aware", (0,), 3),
]


def silent(what: str, done: int, total: int) -> None:
    """Report to nobody."""


def test_a_stopped_study_goes_on_and_tells_what_is_missing(tmp_path: Path) -> None:
    study = AttackStudy(tmp_path, {GREY: data.load("fashion-mnist-sample")})
    study.run(CELLS[:1], silent)
    first = study.journal.read()
    table = render_markdown({"trial": make_lines(CELLS, first)})
    assert "| fast | 2 |" in table
    assert "Not run: sample lenet-relu init policy:3-1-7,no-base (policy-aware)." in table
    study.run(CELLS, silent)
    both = study.journal.read()
    assert both[:1] == first
    assert [entry["cell"]["attack"] for entry in both] == ["fast", "policy-aware"]
    assert all(row["status"] == "ok" for entry in both for row in entry["rows"])
    assert [name for name, _ in draw_sheets(tmp_path, CELLS)] == [
        "sample_lenet-relu_init_none.png",
        "sample_lenet-relu_init_policy-3-1-7-no-base.png",
    ]
    assert "Not run" not in render_markdown({"trial": make_lines(CELLS, both)})
    assert "| sample | lenet-relu | init | 10.0 |" in render_models(both)
    elsewhere = [replace(cell, part="another") for cell in CELLS]
    study.run(elsewhere, silent)
    assert study.journal.read() == both, "another part that asks the same gets what is there"
    assert "Not run" not in render_markdown({"another": make_lines(elsewhere, both)})
    paths = make_paths(CELLS[:1], both)[GREY, "lenet-relu", "init", "none"]["fast"]
    rows = both[0]["rows"]
    assert paths[-1] == pytest.approx((rows[0]["seconds"], mean(row["psnr_transformed"] for row in rows)), rel=1e-4)
    assert paths[0][1] < paths[-1][1]


def test_an_attack_that_cannot_be_used_is_said_so(tmp_path: Path) -> None:
    study = AttackStudy(tmp_path, {GREY: data.load("fashion-mnist-sample")})
    cells = [replace(CELLS[0], attack="bn-prior"), CELLS[0]]
    study.run(cells, silent)
    assert "batch normalisation" in study.journal.read()[0]["refused"]
    table = render_markdown({"trial": make_lines(cells, study.journal.read())})
    assert "| bn-prior | 0 of 2 | cannot be used |" in table
    assert "| fast | 2 |" in table


def test_lines_of_an_earlier_audit_are_not_taken_for_new_ones(tmp_path: Path) -> None:
    study = AttackStudy(tmp_path, {GREY: data.load("fashion-mnist-sample")})
    study.journal.append({"cell": CELLS[0].to_record(), "rows": [], "paths": []})
    study.run(CELLS[:1], silent)
    first, second = study.journal.read()
    assert "audit_version" not in first
    assert second["audit_version"] == AUDIT_VERSION
    assert len(second["rows"]) == 2


def test_the_images_are_the_first_of_the_balanced_choice(tmp_path: Path) -> None:
    sample = data.load("fashion-mnist-sample")
    study = AttackStudy(tmp_path, {GREY: sample}, seed=3)
    study.run([replace(CELLS[0], images=(1, 3))], silent)
    (line,) = study.journal.read()
    order = data.choose_attacked(sample, 4, 3)
    assert [row["image"] for row in line["rows"]] == [order[1], order[3]]
    assert line["provenance"]["cores"] >= 1
