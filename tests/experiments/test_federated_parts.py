"""The parts of the study of collaborative training together."""

from pathlib import Path

import pytest

from gradveil.errors import InputError
from gradveil.experiments import FEDERATED_PARTS, prepare_federated_study, run_federated_study, write_federated_tables
from gradveil.experiments.federated import FederatedStudy
from gradveil.experiments.federated_leak import LeakStudy
from gradveil.study import silent
from gradveil.workers import Workers
from tests.federated.small_data import make_data


def test_only_the_chosen_parts_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(FederatedStudy, "run", lambda _, trials, __: asked.append(trials[0].part))
    monkeypatch.setattr(LeakStudy, "run", lambda *_: asked.append("leak"))
    run_federated_study(tmp_path, make_data(train=16), ["gap", "leak"], Workers(1), silent)
    assert asked == ["gap", "leak"]


def test_an_empty_study_has_tables_that_say_so(tmp_path: Path) -> None:
    path, written = write_federated_tables(tmp_path, FEDERATED_PARTS)
    assert "0 of 12 trainings were run" in path.read_text()
    assert written["trials"] == []


@pytest.mark.parametrize(("chosen", "table"), [(["nope"], False), (["gap"], True)])
def test_what_cannot_be_done_is_refused(tmp_path: Path, chosen: list[str], table: bool) -> None:
    with pytest.raises(InputError):
        prepare_federated_study(tmp_path, chosen, table)
