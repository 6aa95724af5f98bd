"""Units run for real, on the small sample."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from gradveil.attacks import GradientMatching
from gradveil.audit import choose_candidates
from gradveil.data import DataSet, ImageSet
from gradveil.experiments.paper import jobs
from gradveil.experiments.paper.cells import Cell
from gradveil.experiments.paper.jobs import (
    Halved,
    UnitJob,
    choose_known,
    choose_learnt,
    choose_places,
    make_attack,
    make_local,
    make_shares,
    pictures_at,
    trace_layers,
)
from gradveil.experiments.paper.quirks import CIFAR10_MEAN, CIFAR10_STATISTICS, HALVED_LOSS
from gradveil.experiments.paper.scales import SAMPLE, SMOKE
from gradveil.experiments.paper.sources import load_images
from gradveil.experiments.paper.units import AttackUnit, ScoreUnit, SearchUnit, TrainUnit, Unit
from gradveil.experiments.paper.weights import spec_of, weights_at
from gradveil.study import silent
from gradveil.types import Reconstruction, Update
from gradveil.workers import Workers
from tests.experiments.paper.made_up import line, results

MODEL = TrainUnit(SAMPLE, "mlp", "crop-flip", SMOKE.networks["b"].training)
ATTACK = AttackUnit(MODEL, "none", "adam-cosine", 0, 2, steps=3, floor_images=100)


@pytest.fixture(scope="module")
def data() -> DataSet:
    return load_images(SAMPLE, None, silent)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, data: DataSet) -> Path:
    """Train the model that the tests attack."""
    place = tmp_path_factory.mktemp("study")
    run(MODEL, data, place)
    return place


def run(unit: Unit, data: DataSet, folder: Path) -> dict[str, object]:
    with Workers(1) as crew:
        return UnitJob(unit, crew.share(data), folder).run(lambda *_: None)


def figures(unit: AttackUnit, data: DataSet, folder: Path) -> list[float]:
    rows = run(unit, data, folder)["rows"]
    assert isinstance(rows, list)
    return [row["psnr_transformed"] for row in rows]


def test_a_training_leaves_weights_and_curves(data: DataSet, folder: Path) -> None:
    assert weights_at(folder, MODEL).exists()
    again = run(MODEL, data, folder)
    assert again["images"] == [len(data.train), len(data.test)]
    assert len(again["curves"]) == MODEL.training.epochs  # type: ignore[arg-type]


def test_an_attack_leaves_rows_traces_and_private_pictures(data: DataSet, folder: Path) -> None:
    found = run(ATTACK, data, folder)["rows"]
    assert isinstance(found, list)
    assert [row["status"] for row in found] == ["ok", "ok"]
    assert [row["image"] for row in found] == choose_places(ATTACK, data)
    assert found[0]["layers"]["steps"][0] == 0
    weights = load_file(weights_at(folder, MODEL))
    assert all(weights[name].dim() > 1 for name in found[0]["layers"] if name != "steps")
    assert len(found[0]["layers"]) == 4
    place = pictures_at(folder, ATTACK)
    assert place.stat().st_mode & 0o077 == 0
    assert load_file(place)["rebuilt"].shape == (2, *data.shape)


def test_traces_are_of_the_shallowest_and_deepest_layers_in_the_order_of_the_model() -> None:
    names = ("stem.weight", "scale.weight", "body.first", "body.second", "head.weight", "head.bias")
    points = tuple((step, {name: 0.1 * place for place, name in enumerate(names)}) for step in (0, 10))
    result = Reconstruction(torch.rand(1, 1, 4, 4), torch.tensor([0]), 0.1, similarities=points)
    layers = set(names) - {"scale.weight", "head.bias"}
    assert list(trace_layers(result, layers)) == ["steps", "stem.weight", "body.first", "body.second", "head.weight"]
    assert list(trace_layers(result, layers - {"body.first"})) == ["steps", "stem.weight", "body.second", "head.weight"]
    assert trace_layers(replace(result, similarities=()), layers) == {}


def test_wrong_updates_score_as_much_as_noise_and_far_less_than_an_exact_picture(data: DataSet, folder: Path) -> None:
    exact, noise = replace(ATTACK, attack="analytic", steps=None, phase="init"), replace(ATTACK, count=10, steps=1)
    found = [Cell.of([unit], results(line(unit, rows=run(unit, data, folder)["rows"]))) for unit in (exact, noise)]
    assert min(found[0].values("excess").values()) > 10
    assert abs(found[1].mean("excess") or 0) < 0.5
    pictures = load_file(pictures_at(folder, exact))
    assert (pictures["rebuilt_fed"] - pictures["fed"]).abs().max() < 1e-3


def test_who_learns_has_images_of_no_client_and_is_held_against_others(
    data: DataSet, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = replace(ATTACK, attack="learned", steps=None, count=10, told=True)
    attacked, learnt = set(choose_places(unit, data)), choose_learnt(unit, data)
    assert len(learnt) == (len(data.test) - 10) // 2
    assert not attacked & set(learnt)
    assert torch.equal(choose_known(unit, data).images, data.test.images[learnt])
    assert choose_learnt(ATTACK, data) == []
    excluded: list[int] = []

    def choose(data: DataSet, places: Sequence[int], labels: Tensor, seed: int) -> ImageSet:
        excluded.extend(places)
        return choose_candidates(data, places, labels, seed)

    monkeypatch.setattr(jobs, "choose_candidates", choose)
    rows = run(unit, data, folder)["rows"]
    assert isinstance(rows, list)
    assert [row["status"] for row in rows] == ["ok"] * 10
    assert set(excluded) == attacked | set(learnt)


def test_half_the_gradient_is_the_same_to_the_cosine_and_another_to_a_sum_of_squares(
    data: DataSet, folder: Path
) -> None:
    halved = replace(ATTACK, quirks=(HALVED_LOSS,))
    assert figures(halved, data, folder) == pytest.approx(figures(ATTACK, data, folder), abs=1e-3)
    squares = replace(ATTACK, attack="adam-l2", steps=30)
    odd = replace(squares, quirks=(HALVED_LOSS,))
    assert figures(odd, data, folder) != pytest.approx(figures(squares, data, folder), abs=1e-3)


def test_half_is_half() -> None:
    update = Update({"weight": torch.tensor([2.0, 4.0])}, 1)
    assert Halved().release(update, torch.Generator()).tensors["weight"].tolist() == [1.0, 2.0]


def test_the_first_images_are_those_of_the_split(data: DataSet) -> None:
    assert choose_places(replace(ATTACK, choice="first", first=2), data) == [2, 3]
    balanced = choose_places(replace(ATTACK, count=10), data)
    assert sorted(data.test.labels[balanced].tolist()) == list(range(10))
    assert choose_places(replace(ATTACK, first=4, count=6), data) == balanced[4:]


def test_images_are_dealt_to_clients_who_work_as_asked(data: DataSet) -> None:
    unit = replace(ATTACK, count=4, per_client=2, epochs=3)
    assert [len(share.places) for share in make_shares(unit, data)] == [2, 2]
    assert make_local(unit).epochs == 3
    assert not make_local(ATTACK).takes_steps


def test_steps_and_restarts_are_the_attacks_own_unless_given() -> None:
    own = make_attack(replace(ATTACK, steps=None))
    changed = make_attack(replace(ATTACK, steps=7, restarts=5))
    assert isinstance(own, GradientMatching)
    assert isinstance(changed, GradientMatching)
    assert (own.descent.steps, own.restarts.count) == (4800, 1)
    assert (changed.descent.steps, changed.restarts.count) == (7, 5)


def test_one_quirk_gives_the_model_other_statistics(data: DataSet) -> None:
    assert spec_of(MODEL, data).mean == data.mean
    images = ImageSet(torch.zeros(4, 3, 28, 28, dtype=torch.uint8), torch.arange(4))
    colour = replace(data, train=images, test=images, mean=(0.5,) * 3, std=(0.2,) * 3)
    odd = spec_of(replace(MODEL, quirks=(CIFAR10_STATISTICS,)), colour)
    assert spec_of(MODEL, colour).mean == colour.mean
    assert odd.mean == CIFAR10_MEAN


def test_scores_are_those_of_every_image_with_the_way_there(data: DataSet, folder: Path) -> None:
    unit = ScoreUnit(MODEL, "3-1-7", 4, quadrature="trapezoid-3", curves=True)
    found = run(unit, data, folder)
    assert len(found["scores"]) == len(found["curves"]) == 4  # type: ignore[arg-type]
    assert found["points"] == [0.0, 0.5, 1.0]
    assert [curve[-1] for curve in found["curves"]] == [1.0] * 4  # type: ignore[attr-defined]
    for form in ("ours", "reference"):
        accuracy = run(replace(unit, score="s-acc", phase="init", form=form, curves=False), data, folder)
        assert all(score < 0 for score in accuracy["scores"])  # type: ignore[attr-defined]


def test_a_search_keeps_the_best(data: DataSet, folder: Path) -> None:
    found = run(SearchUnit(MODEL, 6, 4, 2), data, folder)
    scores = [score for _, score, _ in found["kept"]]  # type: ignore[attr-defined]
    assert scores == sorted(scores)
    assert len(scores) <= 2
    assert found["hybrid"]
