"""Captured rounds, attacked offline: the same result as in the audit that released them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.audit import load_capsules
from gradveil.audit.release import Scene, Share
from gradveil.capsule import name_capsule, write_capsule, write_truth
from gradveil.data import DataSet
from gradveil.defences import parse_arm
from gradveil.errors import DataError, SettingsError
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.rounds import Captured
from gradveil.types import LocalTraining


def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(120)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:20]))


def capture(arm: str, client: int, local: LocalTraining, images: int = 1) -> Captured:
    """Let a client of the training split release an update."""
    sample = small_data()
    spec = ModelSpec("mlp", sample.shape, sample.classes, sample.mean, sample.std)
    weights = spec.build(generator(0, "model")).state_dict()
    scene = Scene(spec, weights, parse_arm(arm), "round-1", local, None, False, True, 0)
    places = tuple(range(client * images, (client + 1) * images))
    batch = sample.train.take(torch.tensor(places)).batch()
    return scene.capture([Share(places, batch)], "cpu")


def write(folder: Path, captured: Captured, client: int, keep_truth: bool = True) -> Path:
    path = folder / name_capsule(1, client)
    write_capsule(path, replace(captured.round, client=client), 1)
    if keep_truth:
        write_truth(path, captured.truths, {"data": "sample"})
    return path


def test_capsules_are_attacked_and_scored(tmp_path: Path) -> None:
    local = LocalTraining(loss=CrossEntropy(0.1), mode="train")
    paths = [write(tmp_path, capture("none", client, local), client) for client in (0, 1)]
    report = load_capsules(paths, small_data(), ["analytic"]).run()
    assert [(row.phase, row.image, row.status) for row in report.rows] == [("round-1", 0, "ok"), ("round-1", 1, "ok")]
    assert all(row.psnr_transformed is not None and row.psnr_transformed > 40 for row in report.rows)
    assert report.notices == ()
    assert report.settings.labels == "hidden"


def test_rounds_stand_in_their_order(tmp_path: Path) -> None:
    captured = capture("none", 0, LocalTraining())
    paths = []
    for number in (10, 2):
        paths.append(tmp_path / name_capsule(number, 0))
        write_capsule(paths[-1], replace(captured.round, phase=f"round-{number}"), number)
        write_truth(paths[-1], captured.truths, {})
    report = load_capsules(paths, small_data(), ["analytic"]).run()
    assert [summary.phase for summary in report.summaries] == ["round-2", "round-10"]


def test_the_victims_images_are_not_public(tmp_path: Path) -> None:
    path = write(tmp_path, capture("none", 3, LocalTraining(), images=4), 3)
    audit = load_capsules([path], small_data(), ["analytic"])
    victims = {truth.image for truth in audit.truths[path.stem]}
    assert victims == {12, 13, 14, 15}
    left = {image.numpy().tobytes() for image in audit.public_data().train.images}
    assert all(image.numpy().tobytes() not in left for image in small_data().train.images[12:16])


def test_clients_who_hold_every_image_leave_no_public_ones(tmp_path: Path) -> None:
    path = write(tmp_path, capture("none", 0, LocalTraining(steps=1), images=120), 0)
    with pytest.raises(SettingsError, match="audit fewer clients"):
        load_capsules([path], small_data(), ["fast"], steps=1).run()


def test_without_the_truth_there_are_pictures_and_no_scores(tmp_path: Path) -> None:
    path = write(tmp_path, capture("none", 0, LocalTraining()), 0, keep_truth=False)
    audit = load_capsules([path], small_data(), ["analytic"])
    result = audit.attack()["analytic"][path.stem]
    assert result.status == "ok"
    assert result.images.shape == (1, 1, 28, 28)
    with pytest.raises(DataError, match="--keep-truth"):
        audit.run()


def test_the_preflight_sees_a_round_that_was_not_made_as_it_says(tmp_path: Path) -> None:
    captured = capture("none", 0, LocalTraining(steps=2, loss=CrossEntropy(0.1)), images=2)
    lying = replace(captured.round.update.local, learning_rate=0.2)
    update = replace(captured.round.update, local=lying)
    path = write(tmp_path, Captured(replace(captured.round, update=update), captured.truths), 0)
    report = load_capsules([path], small_data(), ["fast"], steps=1).run()
    assert any("differs from the released one" in notice for notice in report.notices)


def test_capsules_of_other_data_or_arms_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path, capture("none", 0, LocalTraining()), 0)
    second = write(tmp_path, capture("gaussian:0.1", 1, LocalTraining()), 1)
    with pytest.raises(SettingsError, match="another model or arm"):
        load_capsules([first, second], small_data())
    half = small_data()
    smaller = replace(
        half,
        train=replace(half.train, images=half.train.images[..., :14]),
        test=replace(half.test, images=half.test.images[..., :14]),
    )
    with pytest.raises(SettingsError, match="choose the data"):
        load_capsules([first], smaller)
    with pytest.raises(SettingsError, match="at least one"):
        load_capsules([], small_data())
