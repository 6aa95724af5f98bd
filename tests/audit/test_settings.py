"""What an audit may be asked."""

from dataclasses import replace

import pytest

from gradveil.audit import AuditSettings
from gradveil.errors import InputError, UnknownNameError
from gradveil.losses import CrossEntropy
from gradveil.training import BRIEF, PAPER
from gradveil.types import LocalTraining


def test_settings_go_through_json() -> None:
    local = LocalTraining(epochs=2, batch_size=2, optimiser="adam", mode="train")
    settings = AuditSettings(
        arms=("none", "policy:3-1-7"), images=4, images_per_client=2, local=local, steps=7, labels="hidden"
    )
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
        {"phases": ("later",)},
        {"attacks": ("fast", "fast")},
        {"images_per_client": 0},
        {"images": 8, "participants": 3},
        {"images": 8, "images_per_client": 3},
        {"places": (1, 1, 2, 3, 4, 5, 6, 7)},
        {"places": (1, 2)},
        {"local": LocalTraining(steps=2, batch_size=4)},
        {"labels": "guessed"},
        {"steps": 0},
        {"budget": 0.0},
        {"budget": float("nan")},
        {"gradients": 0},
        {"steps": 3, "budget": 1.0},
        {"seed": -1},
        {"canaries": -1},
        {"first_look": 0},
    ],
)
def test_nonsense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        replace(AuditSettings(), **change)  # type: ignore[arg-type]


def test_the_loss_is_that_of_the_training() -> None:
    assert AuditSettings(training=BRIEF).local.loss == CrossEntropy(0.1)
    assert AuditSettings(training=PAPER).local.loss == CrossEntropy()


def test_settings_of_earlier_versions_are_read() -> None:
    old = AuditSettings().to_record()
    for key in ("local", "places", "images_per_client"):
        del old[key]
    del old["training"]["loss"]
    old["training"]["label_smoothing"] = 0.1
    assert AuditSettings.from_record(old) == AuditSettings()


def test_the_release_is_put_into_words() -> None:
    assert AuditSettings().released == "one gradient of 1 image, eval mode, cross-entropy:smoothing=0.1"
    several = AuditSettings(images=8, images_per_client=4, participants=2, local=LocalTraining(steps=2, batch_size=2))
    assert several.released.startswith("the mean over 2 clients of the weight change of 2 local steps on 4 images (sgd")
