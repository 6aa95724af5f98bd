"""Leak against round: which cells are captured, and how a round is attacked."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.experiments import federated_leak
from gradveil.experiments.federated_leak import (
    LOCAL,
    LeakCell,
    LeakStudy,
    LeakTrial,
    cells,
    trials,
)
from gradveil.experiments.leak_tables import make_table
from gradveil.federated import FederatedSettings
from gradveil.study import silent
from gradveil.training import FAST
from tests.federated.small_data import make_data

SETTINGS = FederatedSettings(
    *("small", "convnet-2", 3, "fedavg", "none"),
    rounds=2,
    local=replace(LOCAL, steps=2, batch_size=3),
    training=replace(FAST, threads=1),
)
TRIAL = LeakTrial(LeakCell("FedAvg", SETTINGS, 2), 1)


def test_every_point_has_32_images_or_more() -> None:
    for cell in cells():
        settings = cell.settings
        works = settings.works
        each = works.count_steps(1) * (works.batch_size or 0) if works.takes_steps else settings.client_batch
        assert each * (settings.clients if cell.secure else cell.victims) >= 32


def test_no_round_is_asked_for_twice_and_the_first_round_of_all_cells_comes_first() -> None:
    asked = [str(trial.key()) for trial in trials()]
    assert len(set(asked)) == len(asked)
    first = [trial.round for trial in trials()][: len(list(cells()))]
    assert set(first) == {1}


def test_captured_rounds_are_attacked_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federated_leak, "ROUNDS", (1, 2))
    data = make_data(train=96)
    federated_leak.capture(TRIAL.cell, data, tmp_path / "captured" / TRIAL.cell.folder)
    monkeypatch.setattr(federated_leak, "run_federated", lambda *_, **__: pytest.fail("trained again"))
    study = LeakStudy(tmp_path, data)
    study.run([TRIAL], silent)
    (line,) = study.journal.read()
    assert len(line["rows"]) == 12, "two clients with six images each"
    assert not any("differs from the released one" in notice for notice in line["notices"])
    table = make_table([TRIAL, replace(TRIAL, round=2)], study.journal.read())
    assert "| FedAvg | convnet-2, train | `none` | 1 | 12 |" in table[2]
    assert table[-1].startswith("1 of 2 rounds were attacked")
    LeakStudy(tmp_path, data).run([TRIAL], silent)
    assert len(study.journal.read()) == 1
