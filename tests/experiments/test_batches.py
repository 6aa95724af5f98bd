"""The study of batches and local steps: cells, journal and counts."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.attacks import find_attack
from gradveil.data import DataSet
from gradveil.experiments.batches import (
    ATTACKS,
    CLIENT,
    IMAGES,
    MODELS,
    STEPS,
    TRAINING,
    BatchCell,
    BatchStudy,
    cells,
    count_batches,
    make_audit,
)
from gradveil.study import silent

CELL = BatchCell("mlp", "init", "eval", 4, None, "spear", images=8)


def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    return replace(sample, train=sample.train.take(torch.arange(120)), test=sample.test.take(torch.arange(200)))


def make_study(folder: Path) -> BatchStudy:
    return BatchStudy(folder, small_data(), replace(TRAINING, epochs=1, test_every=1, batch_size=25))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> BatchStudy:
    made = make_study(tmp_path_factory.mktemp("study"))
    made.run([CELL], silent)
    return made


def test_every_cell_is_there_once_and_has_enough_images() -> None:
    every = list(cells())
    assert len(set(every)) == len(every)
    assert all(one.images >= IMAGES >= 32 and one.images % one.batch == 0 for one in every)
    assert all(find_attack(name) for name in ATTACKS)
    for model, modes in MODELS.items():
        gradients = {(one.batch, one.phase, one.mode) for one in every if one.model == model and one.steps is None}
        assert gradients == {(b, p, m) for b in (1, 2, 4, 8, 16, 32) for p in ("init", "final") for m in modes}
        assert {one.steps for one in every if one.model == model} == {None, *STEPS}


def test_a_step_takes_all_images_of_a_client() -> None:
    local = replace(CELL, batch=CLIENT, steps=5).local()
    assert (local.steps, local.batch_size) == (5, CLIENT)
    assert not CELL.local().takes_steps


def test_a_cell_has_a_summary_and_the_counted_batches(study: BatchStudy) -> None:
    (entry,) = study.journal.read()
    assert entry["cell"] == CELL.to_record()
    assert entry["counted"] == [4, 4]
    assert entry["summary"]["images"] == 8
    assert entry["summary"]["figures"]["psnr_transformed"]["mean"] > 50
    assert (entry["refused"], entry["failed"]) == ("", "")


def test_what_is_in_the_journal_is_not_run_again(study: BatchStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("it was run again")

    monkeypatch.setattr(BatchStudy, "run_cell", refuse)
    make_study(study.folder).run([CELL], silent)
    with pytest.raises(AssertionError):
        make_study(study.folder).run([replace(CELL, batch=2)], silent)


def test_batches_are_counted_off_weight_changes_too(study: BatchStudy) -> None:
    weights, _ = study.weights("mlp", "init")
    audit = make_audit(small_data(), replace(CELL, steps=1), TRAINING, weights)
    assert count_batches(audit, weights) == [4, 4]
