"""The single transformations: what is scored, the ranking, and going on after a stop."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.data import DataSet
from gradveil.errors import CheckpointError
from gradveil.experiments.single_transforms import (
    PUBLISHED,
    SingleSettings,
    SingleTransforms,
    among_best,
    entries_of,
    make_bars,
    make_lines,
    render_markdown,
    single_policies,
)
from gradveil.metrics import mean_interval
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.study import silent
from gradveil.training import FAST, save_checkpoint

QUICK = SingleSettings(images=3, quadrature="gauss-1")


@pytest.fixture(scope="module")
def sample() -> DataSet:
    return data.load("fashion-mnist-sample")


@pytest.fixture(scope="module")
def weights(sample: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = ModelSpec("lenet-relu", sample.shape, sample.classes, sample.mean, sample.std)
    path = tmp_path_factory.mktemp("model") / "half.safetensors"
    save_checkpoint(path, spec.build(generator(0, "model")).state_dict(), spec, {})
    return path


def test_every_entry_has_one_function() -> None:
    policies = single_policies()
    assert len(policies) == 28
    assert sorted(entry for name in policies for entry in entries_of(name)) == list(range(50))
    assert entries_of("none") == [28, 39]


def test_what_is_scored_already_is_not_scored_again(sample: DataSet, weights: Path, tmp_path: Path) -> None:
    whole = SingleTransforms(tmp_path / "whole", sample, settings=QUICK)
    (tmp_path / "whole").mkdir()
    scores = whole.run(weights, silent)
    assert set(scores) == set(single_policies())
    cut = tmp_path / "cut"
    cut.mkdir()
    lines = (tmp_path / "whole" / "journal.jsonl").read_text().splitlines(keepends=True)
    (cut / "journal.jsonl").write_text("".join(lines[:20]) + lines[20][:30])
    again: list[int] = []
    repeated = SingleTransforms(cut, sample, settings=QUICK).run(weights, lambda *report: again.append(report[2]))
    assert repeated == scores
    assert again[-1] == 8
    other = SingleTransforms(cut, sample, settings=replace(QUICK, seed=1))
    assert other.read(other.describe(weights)) == {}


def test_a_model_is_trained_once(sample: DataSet, tmp_path: Path) -> None:
    study = SingleTransforms(tmp_path, sample, "lenet-relu", QUICK, epochs=1, fraction=0.02)
    path = study.find_weights(silent)
    written = path.stat().st_mtime_ns
    assert study.load(path).spec.name == "lenet-relu"
    assert study.find_weights(silent).stat().st_mtime_ns == written


def test_weights_for_other_images_are_refused(sample: DataSet, weights: Path, tmp_path: Path) -> None:
    other = replace(sample, class_names=(*sample.class_names, "hat"))
    with pytest.raises(CheckpointError, match="is for images of"):
        SingleTransforms(tmp_path, other).load(weights)


def test_the_ranking_names_what_is_in_common() -> None:
    names = list(single_policies())
    scores = {name: [0.5 + 0.01 * place, 0.6 + 0.01 * place] for place, name in enumerate(names)}
    scores["translateX:9"] = [0.1, 0.2]
    scores["brightness:9"] = [0.2, 0.3]
    lines = make_lines(scores)
    assert [line.function for line in lines[:2]] == ["translateX:9", "brightness:9"]
    assert len(lines) == 27
    assert lines[0].against.mean == pytest.approx(0.15 - 0.55)
    assert sum(line.among_best for line in lines) == pytest.approx(5)
    assert lines[0].among_best == 1
    text = render_markdown(lines, mean_interval(scores["none"]), "a study")
    first = lines[2].entries[0]
    assert f"Best five: 3, 15, {first}," in text
    assert "| 1 | 3 | translateX:9 | 0.150" in text
    common = sum(any(entry in PUBLISHED for entry in line.entries) for line in lines[:5])
    assert f"In common: {common} of 5" in text


def test_bars_are_in_the_order_of_the_catalogue() -> None:
    scores = {name: [0.01 * place, 0.02 * place] for place, name in enumerate(single_policies())}
    bars = make_bars(make_lines(scores), mean_interval(scores["none"]))
    assert len(bars) == 50
    assert bars[3].label == "3 translateX:9 *"
    assert bars[28].score == 0
    assert bars[42].score == bars[43].score
    assert not bars[39].marked


def test_chance_is_shared_among_the_best() -> None:
    table = torch.randn(8, 30, generator=generator(0, "table"), dtype=torch.float64)
    table[3] -= 10
    table[4] += 10
    shares = among_best(table, 0)
    assert shares[3] == 1
    assert shares[4] == 0
    assert shares.sum() == pytest.approx(5)


def test_lines_of_an_earlier_version_are_of_plain_cross_entropy(sample: DataSet, weights: Path, tmp_path: Path) -> None:
    plain = SingleTransforms(tmp_path, sample, settings=QUICK)
    old = {name: value for name, value in plain.describe(weights).items() if name != "loss"}
    plain.journal.append({"study": old, "function": "none", "scores": [0.5]})
    assert plain.read(plain.describe(weights)) == {"none": [0.5]}
    loaded = plain.load(weights)
    smoothed = tmp_path / "smoothed.safetensors"
    save_checkpoint(smoothed, dict(loaded.weights), loaded.spec, {"settings": FAST.to_record()})
    assert smoothed.read_bytes() == weights.read_bytes()
    assert plain.describe(smoothed)["loss"] == "cross-entropy:smoothing=0.1"
    assert plain.read(plain.describe(smoothed)) == {}
