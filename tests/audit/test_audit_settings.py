"""What an audit may be asked."""

from dataclasses import replace

import pytest

from gradveil.audit import AuditSettings
from gradveil.errors import InputError, UnknownNameError


def test_settings_go_through_json() -> None:
    settings = AuditSettings(arms=("none", "policy:3-1-7"), images=5, steps=7, labels="hidden")
    assert AuditSettings.from_record(settings.to_record()) == settings


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'images'"):
        AuditSettings.from_record({"image": 3})


@pytest.mark.parametrize(
    "change",
    [
        {"images": 0},
        {"images": -3},
        {"arms": ()},
        {"arms": ("none", "none")},
        {"arms": ("policy:99-1",)},
        {"phases": ("later",)},
        {"attacks": ("magic",)},
        {"labels": "guessed"},
        {"steps": 0},
        {"seed": -1},
    ],
)
def test_nonsense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        replace(AuditSettings(), **change)  # type: ignore[arg-type]
