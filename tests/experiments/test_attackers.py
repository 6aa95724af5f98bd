"""The study of how strong `standard` is: cells, journal, and earlier versions."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.attacks import Ensemble, LowestLoss
from gradveil.data import DataSet
from gradveil.defences import parse_arm
from gradveil.experiments.attackers import PARTS, TRAINING, UNTOLD, AttackerStudy, Cell, attackers, cells, make_audit
from gradveil.study import silent

CELL = Cell("versions", "grey", "mlp", "none", "final", 1, "standard", 4, share=0.01)


def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(120)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(torch.arange(200)))


def make_study(folder: Path) -> AttackerStudy:
    return AttackerStudy(
        folder, {"grey": small_data()}, {"grey": replace(TRAINING, epochs=1, test_every=1, batch_size=25)}
    )


def test_every_cell_is_there_once_and_can_be_attacked() -> None:
    every = cells()
    assert len(set(every)) == len(every)
    assert all(parse_arm(cell.arm) and cell.attacker in attackers() for cell in every)
    places = {cell.place for cell in every if cell.part == "versions"}
    assert len(places) >= 12
    assert all(
        {cell.attacker for cell in every if cell.place == place} >= {"standard", "standard 6"} for place in places
    )
    assert [cell.images for cell in cells(["modern"])] == [32] * 7
    assert {cell.part for cell in every} == set(PARTS)
    told = cells(["told"])
    assert [cell.attacker for cell in told[:2]] == ["standard", UNTOLD]
    audits = [make_audit(small_data(), replace(cell, images=2), TRAINING).settings for cell in told[:2]]
    assert [one.knows_defence for one in audits] == [True, False]
    assert audits[0].arms == audits[1].arms


def test_earlier_versions_are_what_they_were() -> None:
    fifth, sixth, present = (attackers()[name] for name in ("standard 5", "standard 6", "standard"))
    assert isinstance(fifth, Ensemble)
    assert isinstance(sixth, Ensemble)
    assert isinstance(present, Ensemble)
    assert set(present.members) - set(sixth.members) == {"learned", "from learned"}
    assert set(sixth.members) - set(fifth.members) == {"spear"}
    assert (fifth.choice, sixth.choice) == (LowestLoss(looks_through=True), LowestLoss())


def test_a_share_is_one_of_the_members_own_gradients() -> None:
    cell = replace(CELL, attacker="standard 6", share=0.1)
    assert cell.attack().gradients == pytest.approx(0.1 * attackers()["standard 6"].gradients, rel=0.05)
    assert replace(CELL, attacker="modern", share=0, gradients=50).attack().gradients == 50


def test_public_images_are_none_of_the_clients_and_none_is_attacked() -> None:
    audit = make_audit(small_data(), CELL, TRAINING)
    public, clients, attacked = (
        {image.numpy().tobytes() for image in images}
        for images in (audit.public.images, audit.data.train.images, audit.data.test.images[list(audit.places)])
    )
    assert not public & clients
    assert not public & attacked


def test_a_cell_has_its_rows_and_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path)
    study.run([CELL], silent)
    (entry,) = study.journal.read()
    assert entry["cell"] == CELL.to_record()
    assert len(entry["rows"]) == 4
    assert all(row["psnr_transformed"] > 50 for row in entry["rows"]), "the images can be read off the first layer"
    assert entry["processor_seconds"] >= 0

    def refuse(*_: object) -> None:
        raise AssertionError("it was run again")

    monkeypatch.setattr(AttackerStudy, "run_cell", refuse)
    make_study(tmp_path).run([CELL], silent)
    with pytest.raises(AssertionError):
        make_study(tmp_path).run([replace(CELL, seed=2)], silent)
