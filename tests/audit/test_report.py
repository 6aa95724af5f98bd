"""What a report shows and records."""

from dataclasses import replace

import torch

from gradveil import data
from gradveil.audit import AUDIT_VERSION, Audit, AuditSettings

SETTINGS = AuditSettings(phases=("init",), arms=("none", "crop-flip"), images=2, steps=2, floor_images=50)


def test_pictures_go_with_the_rows() -> None:
    report = Audit(SETTINGS, data=data.load("fashion-mnist-sample")).run()
    assert len(report.pictures) == len(report.rows) == 4
    for picture, one in zip(report.pictures, report.attacked, strict=True):
        assert picture.rebuilt is not None
        assert torch.equal(picture.original, one.truth.original[0])
        assert one.reconstruction.history == ()
    assert torch.equal(report.pictures[0].original, report.pictures[0].transformed)


def test_the_record_names_its_version_and_every_setting() -> None:
    report = Audit(replace(SETTINGS, arms=("none",)), data=data.load("fashion-mnist-sample")).run()
    figures = report.to_figures()
    assert figures["audit_version"] == AUDIT_VERSION
    assert figures["rows"][0]["approximations"] == []
    assert {row["kind"] for row in figures["rows"]} == {figures["kind"]} == {"diagnostic"}
    record = report.settings.to_record()
    assert record["local"]["loss"] == "cross-entropy:smoothing=0.1"
    assert AuditSettings.from_record(record) == report.settings
