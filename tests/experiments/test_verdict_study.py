"""The study of the verdict: its audits are null, its journal resumes, its tables come from the journal."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

import pytest

from gradveil import data
from gradveil.data import choose_public
from gradveil.errors import SettingsError
from gradveil.experiments.blind_guess import Guess
from gradveil.experiments.verdict_study import GREY, PARTS, NullTrial, TrialJob, VerdictStudy, keep_classes
from gradveil.experiments.verdict_tables import render_markdown
from gradveil.study import silent

TRIALS = [
    NullTrial(GREY, "wrong gradient", "quick", 8, 1),
    NullTrial(GREY, "dpsgd", "quick", 1, 2),
    NullTrial(GREY, "blind guess", "quick", 8, 3),
]


def make_study(folder: Path) -> VerdictStudy:
    sample = data.load("fashion-mnist-sample")
    small = replace(sample, train=choose_public(sample, 600, 0))
    return VerdictStudy(folder, {GREY: small}, steps=2, full_steps=2)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> VerdictStudy:
    made = make_study(tmp_path_factory.mktemp("verdict"))
    made.run("false findings", TRIALS, silent)
    return made


def test_there_are_200_audits_and_more_each_with_its_own_seed() -> None:
    trials = [trial for trial in PARTS["false findings"]() if isinstance(trial, NullTrial)]
    assert len(trials) >= 200
    assert len({trial.seed for trial in trials}) == len(trials)
    assert {trial.null for trial in trials} == {"wrong gradient", "noise", "dpsgd", "blind guess"}
    hidden = [trial for trial in trials if trial.hides_labels]
    assert 0.4 < len(hidden) / sum(trial.participants == 8 for trial in trials) < 0.6
    assert {trial.images for trial in trials} == {8, 20, 24, 64}


@pytest.mark.slow
def test_a_line_says_what_was_asked_and_what_became_of_every_cell(study: VerdictStudy) -> None:
    (swapped, noisy, blind) = study.results(["false findings"])["false findings"]
    assert swapped["trial"] == asdict(TRIALS[0])
    assert swapped["settings"]["labels"] == "hidden"
    assert (swapped["settings"]["participants"], swapped["settings"]["seed"]) == (8, 1)
    assert [(cell["arm"], cell["phase"]) for cell in swapped["cells"]][:2] == [
        ("none", "init"),
        ("policy:3-1-7+43-18-18", "init"),
    ]
    for cell in [*swapped["cells"], *noisy["cells"], *blind["cells"]]:
        assert cell["failed"] == 0
        assert len(cell["p_values"]) == cell["images"] == 8
        assert all(0 < value <= 1 for value in cell["p_values"])
    assert {cell["attack"] for cell in blind["cells"]} == {f"blind, {guess}" for guess in get_args(Guess)}
    assert swapped["provenance"]["gradveil"]


@pytest.mark.slow
def test_what_is_in_the_journal_is_not_run_again(study: VerdictStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrialJob, "run", lambda *_: pytest.fail("ran again"))
    make_study(study.folder).run("false findings", TRIALS, silent)


@pytest.mark.slow
def test_the_table_counts_the_audits_of_the_journal(study: VerdictStudy) -> None:
    text = render_markdown(study.results([]))
    assert "3 audits in which nothing leaks" in text
    assert "| dpsgd, sample, quick, 1× | 1 | 0 (0.0% to 97.5%) |" in text
    assert "Not run yet" in text


@pytest.mark.slow
def test_a_part_without_results_gets_no_table(study: VerdictStudy, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no results of power"):
        study.results(["power"])
    with pytest.raises(SettingsError, match="no journal of"):
        VerdictStudy(tmp_path, {}).results([])


def test_the_first_classes_are_kept_with_their_own_statistics() -> None:
    sample = data.load("fashion-mnist-sample")
    few = keep_classes(sample, 4)
    assert (few.classes, int(few.test.labels.max())) == (4, 3)
    assert few.mean != sample.mean
    assert keep_classes(sample, 10) is sample
