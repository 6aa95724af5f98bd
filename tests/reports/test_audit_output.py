"""From a report to its record, its pictures and one page."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from gradveil.attacks import find_attack
from gradveil.audit import Audit, AuditReport
from gradveil.reports import pictures_of, read_audit, record_of, render_report, save_page, write_audit
from gradveil.results import to_json
from tests.audit.test_audit import SMALL, small_data


@cache
def make_report() -> AuditReport:
    settings = replace(SMALL, phases=("init",), arms=("none", "policy:3-1-7"), images=2, steps=None)
    attacks = {"policy-aware": find_attack("policy-aware").with_steps(4), "analytic": find_attack("analytic")}
    return Audit(settings, data=small_data(), attacks=attacks).run(frames=1)


def test_every_row_has_its_pictures() -> None:
    report = make_report()
    pictures = pictures_of(report)
    assert len(pictures) == len(report.rows) == 8
    assert pictures.rebuilt_original is not None
    for place, (row, one) in enumerate(zip(report.rows, report.attacked, strict=True)):
        assert torch.equal(pictures.original[place], one.truth.original[0])
        assert torch.equal(pictures.transformed[place], one.truth.transformed[0])
        result = one.reconstruction
        if row.status != "ok":
            assert row.attack == "analytic" or row.arm == "none"
            assert not pictures.rebuilt[place].any()
            assert not pictures.rebuilt_original[place].any()
        else:
            assert torch.equal(pictures.rebuilt_original[place], result.images[0])
            fed = result.images if result.transformed is None else result.transformed
            assert torch.equal(pictures.rebuilt[place], fed[0])


def test_frames_are_those_of_the_worst_image_of_a_cell() -> None:
    report = make_report()
    frames = pictures_of(report).frames
    with_way = [place for place, one in enumerate(report.attacked) if one.reconstruction.pictures]
    assert list(frames) == with_way
    assert with_way
    for place, way in frames.items():
        assert way.steps == tuple(step for step, _ in report.attacked[place].reconstruction.pictures)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    report = make_report()
    written = write_audit(tmp_path, record_of(report, "gradveil audit"), pictures_of(report))
    record, pictures = read_audit(tmp_path)
    assert record == json.loads(to_json(written))
    assert record["command_line"] == "gradveil audit"
    assert pictures is not None
    assert torch.equal(pictures.rebuilt, pictures_of(report).rebuilt)


def test_one_page_can_be_saved_alone(tmp_path: Path) -> None:
    save_page(make_report(), tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600
    assert "policy:3-1-7" in render_report(make_report())
