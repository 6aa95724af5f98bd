"""One call for a person's own model and data."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import gradveil
from gradveil.audit import AuditReport, AuditSettings, audit_model
from gradveil.audit.own import name_loss
from gradveil.defences import CropFlip
from gradveil.errors import SettingsError
from gradveil.losses import CrossEntropy
from gradveil.rng import generator


class Own(nn.Module):
    """Drops and normalises, as people's models do."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 5, stride=3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(4 * 4 * 4, 4)

    def forward(self, images: Tensor) -> Tensor:
        hidden: Tensor = self.head(self.body(images).flatten(1))
        return hidden


def loader(count: int = 120) -> DataLoader[Any]:
    images = torch.rand(count, 3, 16, 16, generator=generator(4))
    return DataLoader(TensorDataset(images, torch.arange(count) % 4), batch_size=16)


def audit(**arguments: Any) -> AuditReport:
    quick = AuditSettings(steps=2, phases=("init",), floor_images=50)
    return audit_model(Own(), loader(), images=2, **{"settings": quick, "arms": ["crop-flip"], **arguments})


def test_a_model_and_a_loader_are_enough() -> None:
    report = gradveil.audit(Own(), loader(), loss=nn.CrossEntropyLoss(), arms=["crop-flip"], images=2)
    assert [(one.arm, one.phase) for one in report.summaries] == [("none", "given"), ("crop-flip", "given")]
    assert {row.status for row in report.rows} == {"ok"}
    assert any("the given weights classify" in notice for notice in report.notices)
    assert report.settings.control
    assert report.settings.preset == "quick-1 with another images, phases, training"
    assert str(report.settings.local.loss) == "cross-entropy"


def test_the_report_shows_itself(tmp_path: Path) -> None:
    report = audit()
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert report.to_figures()["verdict"] in page
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o600
    shown = report._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!')
    assert shown.count('"') == 4  # the page is quoted as a whole


def test_the_control_is_added_unless_it_is_there_or_refused() -> None:
    cases: list[tuple[dict[str, Any], list[str], bool]] = [
        ({"arms": [CropFlip(), "none"]}, ["none", "crop-flip"], False),
        ({"arms": [CropFlip()]}, ["none", "crop-flip"], True),
        ({"arms": ["crop-flip"], "control": False}, ["crop-flip"], False),
    ]
    for arguments, arms, control in cases:
        report = audit(**arguments)
        assert list(report.settings.arms) == arms
        assert report.settings.control is control


def test_a_test_set_of_ones_own_is_attacked() -> None:
    black = DataLoader(TensorDataset(torch.zeros(8, 3, 16, 16), torch.arange(8) % 4))
    report = audit(test=black)
    assert all(float(picture.original.max()) == 0 for picture in report.pictures)


def test_later_phases_train_a_copy() -> None:
    model = Own()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    quick = AuditSettings(steps=2, floor_images=50)
    report = audit_model(model, loader(), images=2, phases=["init", "final"], settings=quick, arms=["none"])
    assert set(report.accuracies) == {"none"}
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        ("cross-entropy", "cross-entropy"),
        (nn.CrossEntropyLoss(label_smoothing=0.1), "cross-entropy:smoothing=0.1"),
        (CrossEntropy(0.2), "cross-entropy:smoothing=0.2"),
    ],
)
def test_losses_are_named(loss: Any, name: str) -> None:
    assert name_loss(loss) == name


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.CrossEntropyLoss(weight=torch.ones(4)), "hinge"])
def test_other_losses_are_refused(loss: Any) -> None:
    with pytest.raises(SettingsError, match=r"cross-entropy|CrossEntropyLoss"):
        name_loss(loss)


def test_the_package_is_imported_when_it_is_used() -> None:
    code = "import sys, gradveil; print('torch' in sys.modules, gradveil.audit.Audit.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False Audit\n"
    with pytest.raises(AttributeError, match="no attribute 'adit'"):
        gradveil.adit  # noqa: B018
