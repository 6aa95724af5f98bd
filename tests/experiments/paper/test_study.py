"""The cache: nothing is run twice, nothing is lost, and what cannot go together is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.errors import SettingsError
from gradveil.experiments.paper.scales import SAMPLE, SMOKE
from gradveil.experiments.paper.study import DIVERGED, Results, Study
from gradveil.experiments.paper.units import ScoreUnit, TrainUnit, Unit
from gradveil.experiments.paper.weights import weights_at
from gradveil.study import silent, without_provenance
from gradveil.workers import Workers
from tests.experiments.paper.made_up import line, trained

MODEL = TrainUnit(SAMPLE, "mlp", "crop-flip", SMOKE.networks["b"].training)
FIRST, SECOND = (ScoreUnit(MODEL, policy, 2, quadrature="trapezoid-3") for policy in ("3", "15"))


def run(study: Study, units: list[Unit], workers: int = 1) -> list[dict[str, object]]:
    with Workers(workers) as crew:
        study.run([units], None, crew, silent)
    return [without_provenance(entry) for entry in study.journal.read()]


def without_times(lines: list[dict[str, object]]) -> list[dict[str, object]]:
    """Leave out how long a training took."""
    return [{name: value for name, value in one.items() if name not in ("seconds", "curves")} for one in lines]


def test_units_are_run_once_and_a_second_study_adds_what_it_lacks(tmp_path: Path) -> None:
    study = Study(tmp_path)
    assert study.missing([FIRST, SECOND]) == [MODEL, FIRST, SECOND]
    before = run(study, [FIRST])
    assert [one["key"] for one in before] == [MODEL.key, FIRST.key]
    after = run(study, [FIRST, SECOND])
    assert after[:2] == before
    assert [one["key"] for one in after[2:]] == [SECOND.key]
    assert study.missing([FIRST, SECOND]) == []


def test_a_cut_journal_goes_on_to_the_same_results(tmp_path: Path) -> None:
    whole, cut = Study(tmp_path / "whole"), Study(tmp_path / "cut")
    for study in (whole, cut):
        study.folder.mkdir()
    expected = run(whole, [FIRST, SECOND])
    run(cut, [FIRST])
    text = cut.journal.path.read_bytes()
    cut.journal.path.write_bytes(text[:-20])
    assert without_times(run(cut, [FIRST, SECOND])) == without_times(expected)


def test_weights_that_are_gone_are_trained_again_if_they_are_needed(tmp_path: Path) -> None:
    study = Study(tmp_path)
    run(study, [FIRST])
    for path in weights_at(tmp_path, MODEL).parent.iterdir():
        path.unlink()
    assert study.missing([FIRST]) == []
    assert study.missing([SECOND]) == [MODEL, SECOND]
    run(study, [SECOND])
    assert study.results().find(SECOND) is not None


def test_what_needs_a_model_that_diverged_is_not_run(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.journal.append(line(MODEL, **{DIVERGED: "training diverged at step 1"}))
    assert study.missing([FIRST]) == []
    assert study.results().diverged(MODEL)
    assert study.results().find(MODEL) is None


def test_results_of_another_version_are_refused(tmp_path: Path) -> None:
    study = Study(tmp_path)
    old = line(MODEL, test_accuracy=0.5)
    study.journal.append({**old, "versions": {**MODEL.versions(), "audit_version": 1}})
    with pytest.raises(SettingsError, match=r"audit_version 1.*choose another folder with --out"):
        run(study, [FIRST])
    other = replace(MODEL, seed=7)
    study.check_versions([other])


def test_the_first_line_of_a_unit_counts() -> None:
    results = Results.of([trained(MODEL, 0.5), trained(MODEL, 0.6)])
    found = results.find(MODEL)
    assert found is not None
    assert found["test_accuracy"] == 0.5
    assert results.used([MODEL, FIRST]) == [found]
