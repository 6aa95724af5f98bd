"""The audit as a whole: small, but real."""

import json
from dataclasses import fields, replace
from functools import cache

import pytest
import torch

from gradveil import data
from gradveil.audit import AuditReport, AuditSettings, Row, run_audit
from gradveil.data import DataSet, ImageSet
from gradveil.errors import SettingsError
from gradveil.training import BRIEF

SMALL = AuditSettings(
    arms=("none", "crop-flip", "policy:3-1-7,no-base"),
    phases=("init", "final"),
    images=3,
    steps=4,
    group=2,
    floor_images=200,
    training=replace(BRIEF, epochs=1, batch_size=50),
)


@cache
def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(300)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:50]))


@cache
def small_report(workers: int = 1) -> AuditReport:
    return run_audit(SMALL, small_data(), workers=workers)


def without_times(report: AuditReport) -> str:
    figures = report.to_figures()
    for entry in (*figures["rows"], *figures["summaries"]):
        entry.pop("seconds")
    return json.dumps(figures)


def test_there_is_a_row_for_every_image_arm_and_phase() -> None:
    keys = [(row.phase, row.arm, row.image) for row in small_report().rows]
    images = sorted({row.image for row in small_report().rows})
    assert len(images) == 3
    assert keys == [(phase, arm, image) for phase in SMALL.phases for arm in SMALL.arms for image in images]


def test_every_advantage_is_the_score_less_its_floor() -> None:
    for row in small_report().rows:
        assert row.status == "ok"
        for target in ("transformed", "original", "aligned"):
            score, floor, advantage = (getattr(row, f"{name}_{target}") for name in ("psnr", "floor", "advantage"))
            assert advantage == pytest.approx(score - floor)


def test_the_fed_picture_is_the_same_in_every_phase() -> None:
    report = small_report()
    half = len(report.pictures) // 2
    for first, second in zip(report.pictures[:half], report.pictures[half:], strict=True):
        assert torch.equal(first.transformed, second.transformed)
    for row, picture in zip(report.rows, report.pictures, strict=True):
        assert torch.equal(picture.original, picture.transformed) == (row.arm == "none")


def test_the_number_of_workers_changes_nothing() -> None:
    assert without_times(small_report(1)) == without_times(small_report(2))


def test_another_seed_changes_the_figures() -> None:
    one = run_audit(replace(SMALL, phases=("init",), arms=("none",)), small_data())
    other = run_audit(replace(SMALL, phases=("init",), arms=("none",), seed=1), small_data())
    assert without_times(one) != without_times(other)


def test_hidden_labels_take_the_class_mean_from_the_floor() -> None:
    settings = replace(SMALL, phases=("init",), arms=("none",), labels="hidden")
    report = run_audit(settings, small_data())
    assert "class mean" not in report.floors["none"].values()
    assert all(row.label_found is True for row in report.rows)


def test_the_record_has_the_promised_columns() -> None:
    promised = (
        "arm phase attack image status psnr_transformed psnr_original floor_transformed floor_original "
        "advantage_transformed advantage_original psnr_aligned floor_aligned advantage_aligned ssim_transformed "
        "ssim_original matching_loss label_found seconds"
    )
    assert set(promised.split()) <= {field.name for field in fields(Row)}


def test_a_diverging_attack_is_a_failed_row() -> None:
    broken = small_data()
    poisoned = DataSet("poisoned", broken.train, broken.test, broken.class_names, broken.mean, (1e-45,))
    report = run_audit(replace(SMALL, phases=("init",), arms=("none",)), poisoned)
    assert {row.status for row in report.rows} == {"failed"}
    assert {row.psnr_transformed for row in report.rows} == {None}
    assert report.summaries[0].finding == "no result"
    assert report.summaries[0].failed == 3


def test_more_images_than_there_are_is_refused() -> None:
    with pytest.raises(SettingsError, match="51 images of 50"):
        run_audit(replace(SMALL, images=51), small_data())


def test_a_phase_after_the_end_is_refused() -> None:
    with pytest.raises(SettingsError, match="after the end"):
        run_audit(replace(SMALL, phases=("epoch-2",)), small_data())


def test_one_class_set_still_has_its_floor() -> None:
    sample = small_data()
    only = ImageSet(sample.train.images, torch.zeros_like(sample.train.labels))
    report = run_audit(replace(SMALL, phases=("init",), arms=("none",)), replace(sample, train=only))
    assert all(row.floor_transformed is not None for row in report.rows)
