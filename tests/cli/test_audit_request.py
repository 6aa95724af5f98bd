"""From options to settings, and which code a stored audit may not import by itself."""

from pathlib import Path
from typing import Any

import pytest

from gradveil import data
from gradveil.audit import AuditSettings
from gradveil.cli.audit_request import check_code, choose_images, name_code, shrink
from gradveil.errors import SettingsError

SAMPLE = data.load("fashion-mnist-sample")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"model": "evil:make"}, "--model evil:make"),
        ({"model": "clip:make"}, "--model clip:make"),
        ({"attacks": ("fast", "evil:Run")}, "--attack fast --attack evil:Run"),
        ({"arms": ("none", "clip:1,evil:Run"), "control": True}, "--defence clip:1,evil:Run"),
        ({"arms": ("evil:Run",)}, "--defence evil:Run --no-control"),
    ],
)
def test_what_a_stored_audit_names_is_named_again_or_not_imported(changes: dict[str, Any], line: str) -> None:
    """Even if the file leaves out the hashes: a seal is no proof of who wrote it."""
    stored = AuditSettings(**changes)
    with pytest.raises(SettingsError) as refused:
        check_code(Path("runs/a"), stored, [None])
    assert str(refused.value).endswith(f"write gradveil audit --resume runs/a {line}")
    check_code(Path("runs/a"), stored, line.split())
    assert name_code(AuditSettings()) == []
    check_code(Path("runs/a"), AuditSettings(), [None])


def test_images_are_a_number_or_places() -> None:
    assert choose_images(None) == {}
    assert choose_images("8") == {"images": 8}
    assert choose_images("3,14") == {"images": 2, "places": (3, 14)}


def test_more_images_than_there_are_become_whole_rounds_of_them() -> None:
    said: list[str] = []
    assert shrink(AuditSettings(images=1000), SAMPLE, said.append).images == 1000
    assert said == []
    asked = AuditSettings(images=1200, images_per_client=3, participants=2)
    assert shrink(asked, SAMPLE, said.append).images == 996
    assert said == ["fashion-mnist-sample has 1,000 test images: 996 are attacked, not 1200."]
