"""`gradveil score` as a person uses it."""

import json
import re
import sys
from pathlib import Path

import pytest
from PIL import Image
from torch import Tensor

from gradveil import data
from gradveil.cli import main
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.scores import AccuracyScore, PrivacyScore, choose_accuracy_images, choose_privacy_images
from gradveil.training import FAST, save_checkpoint
from gradveil.transforms import parse_policy

TINY = ("--images", "4", "--quadrature", "gauss-2", "--batches", "1")


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "score", *words])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_prints_both_scores_beside_those_of_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "3-1-7", *TINY) == 0
    shown = capsys.readouterr().out
    for word in ("none", "3-1-7", "S_pri", "S_acc", "n = 4", "untrained", "gradveil train"):
        assert word in shown
    assert not re.search(r"\d ± \d", shown), "four images have no interval"
    assert run(monkeypatch, "3-1-7", *TINY, "--images", "6") == 0
    assert re.search(r"\d ± \d", capsys.readouterr().out)


def test_json_holds_what_the_library_gives(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "3-1-7", *TINY, "--form", "global", "--start", "normal", "--seed", "5", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    sample, policy = data.load("fashion-mnist-sample"), parse_policy("3-1-7")
    spec = ModelSpec("lenet-relu", sample.shape, sample.classes, sample.mean, sample.std)
    model, test = spec.build(generator(5, "model")), sample.test
    places = choose_privacy_images(sample, 4, 5)
    privacy = PrivacyScore(
        model, test.images[places], test.labels[places], form="global", quadrature="gauss-2", start="normal", seed=5
    )
    accuracy = AccuracyScore(model, *at(test, choose_accuracy_images(sample, 5, batches=1)), batches=1, seed=5)
    none, scored = record["policies"]
    assert (none["policy"], scored["policy"]) == ("none", "3-1-7")
    assert scored["privacy_of_images"] == privacy.score(policy).tolist()
    assert scored["privacy"]["mean"] == pytest.approx(privacy.score(policy).mean().item())
    assert scored["accuracy"] == accuracy.score(policy)
    assert scored["privacy_against_none"]["mean"] == pytest.approx(scored["privacy"]["mean"] - none["privacy"]["mean"])
    assert record["settings"]["images"] == places
    assert record["settings"]["checkpoint"] is None


def at(split: data.ImageSet, places: list[int]) -> tuple[Tensor, Tensor]:
    return split.images[places], split.labels[places]


@pytest.mark.parametrize("quadrature", ["gauss-2", "trapezoid-21"])
def test_draws_the_way_from_noise_to_image(
    quadrature: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "f.png"
    assert run(monkeypatch, "18", *TINY, "--quadrature", quadrature, "--figure", str(figure)) == 0
    assert "f.png" in capsys.readouterr().out
    with Image.open(figure) as picture:
        assert min(picture.size) > 200


def test_a_checkpoint_brings_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = data.load("fashion-mnist-sample")
    spec = ModelSpec("lenet", sample.shape, sample.classes, sample.mean, sample.std)
    path = tmp_path / "half.safetensors"
    save_checkpoint(path, spec.build(generator(1, "model")).state_dict(), spec, {})
    assert run(monkeypatch, "none", *TINY, "--checkpoint", str(path)) == 0
    shown = capsys.readouterr().out
    assert "lenet, half" in shown
    assert "untrained" not in shown
    assert "cross-entropy)" in shown


def test_the_loss_of_the_checkpoint_counts_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = data.load("fashion-mnist-sample")
    spec = ModelSpec("lenet", sample.shape, sample.classes, sample.mean, sample.std)
    weights = spec.build(generator(1, "model")).state_dict()
    scores = {}
    for name, made in {"plain": {}, "smoothed": {"settings": FAST.to_record()}}.items():
        path = tmp_path / f"{name}.safetensors"
        save_checkpoint(path, weights, spec, made)
        assert run(monkeypatch, "none", *TINY, "--checkpoint", str(path), "--json") == 0
        record = json.loads(capsys.readouterr().out)
        scores[record["settings"]["loss"]] = record["policies"][0]["privacy_of_images"]
    plain, smoothed = scores["cross-entropy"], scores["cross-entropy:smoothing=0.1"]
    assert plain != smoothed


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("3-99",), "'99' at character 3"),
        (("3", "--form", "whole"), "unknown form of GradSim 'whole'"),
        (("3", "--quadrature", "simpson-3"), "unknown quadrature"),
        (("3", "--start", "zeros"), "unknown start"),
        (("3", "--accuracy-form", "theirs"), "unknown form of S_acc"),
        (("3", "--images", "0"), "give from 1 to 800"),
        (("3", "--batches", "0"), "give 1 or more"),
        (("3", "--threads", "0"), "give 1 or more"),
        (("3", "--model", "resnet"), "unknown model"),
        (("3", "--checkpoint", "missing.safetensors"), "missing.safetensors cannot be read"),
        (("3", "--figure", "no/where/f.png"), "there is no folder no/where"),
    ],
)
def test_wrong_input_is_one_line(
    words: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words) == 2
    complaint = capsys.readouterr().err
    assert reason in complaint
    assert complaint.count("\n") == 1
