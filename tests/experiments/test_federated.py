"""The study of collaborative training: trials and journal."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.experiments.federated import (
    CANDIDATES,
    PARTS,
    PASSES,
    CentralSettings,
    FederatedStudy,
    FederatedTrial,
    TrialJob,
    identify,
)
from gradveil.federated import FEDAVG, FederatedSettings
from gradveil.study import silent
from gradveil.training import FAST
from tests.federated.small_data import make_data

TRAINING = replace(FAST, epochs=1, batch_size=16, threads=1)
TRIALS = [
    FederatedTrial("trial", "row", "alone", CentralSettings("convnet-2", "none", TRAINING, "small")),
    FederatedTrial(
        *("trial", "row", "together"),
        FederatedSettings("small", "convnet-2", 2, "fedavg", "none", rounds=2, training=TRAINING),
    ),
]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> FederatedStudy:
    made = FederatedStudy(tmp_path_factory.mktemp("study"), make_data(train=96))
    made.run(TRIALS, silent)
    return made


def test_no_trial_of_a_part_is_asked_for_twice() -> None:
    for make in PARTS.values():
        texts = [str(identify({"trial": trial.to_record()})) for trial in make()]
        assert len(set(texts)) == len(texts)


def test_fedavg_is_taken_apart_at_equally_many_images() -> None:
    for trial in PARTS["gap"]():
        settings = trial.settings
        if isinstance(settings, FederatedSettings) and settings.local.steps:
            seen = (settings.rounds or 0) * settings.clients * settings.local.steps * (settings.local.batch_size or 0)
            assert seen / 5000 == pytest.approx(PASSES, rel=0.02)


def test_the_defaults_are_one_of_the_candidates_and_no_shown_seed_chose_them() -> None:
    chosen = (
        FEDAVG.optimiser,
        FEDAVG.learning_rate,
        FEDAVG.batch_size,
        FEDAVG.steps,
        FederatedSettings().server_momentum,
    )
    assert chosen in CANDIDATES
    assert {trial.settings.seed for trial in PARTS["choose"]()} == {1}
    assert {trial.settings.seed for part in ("accuracy", "gap") for trial in PARTS[part]()} == {0}


def test_what_was_run_is_written_down_and_not_run_again(study: FederatedStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = study.journal.read()
    assert (alone["steps_in_a_row"], alone["passes"]) == (6, 1.0)
    assert (together["rounds"], together["steps_in_a_row"]) == (2, 10)
    assert together["passes"] == pytest.approx(2 * 2 * 40 / 96)
    assert 0 <= together["test_accuracy"] <= 1
    assert not any((study.folder / "runs").glob("*")), "a finished run is not kept"
    monkeypatch.setattr(TrialJob, "run", lambda *_: pytest.fail("ran again"))
    FederatedStudy(study.folder, make_data(train=96)).run(TRIALS, silent)


def test_a_run_that_was_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []

    def cut(*_: object, resume: bool, **__: object) -> None:
        calls.append(resume)
        raise KeyboardInterrupt

    study = FederatedStudy(tmp_path, make_data(train=96))
    monkeypatch.setattr("gradveil.experiments.federated.run_federated", cut)
    monkeypatch.setattr("gradveil.experiments.federated.is_unfinished", lambda _: bool(calls))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            study.run(TRIALS[1:], silent)
    assert calls == [False, True]
    assert study.journal.read() == []


def test_what_decides_nothing_does_not_identify() -> None:
    """The first lines of the committed journal have no momentum of the server."""
    settings = FederatedSettings()
    other = replace(settings, local=replace(FEDAVG, steps=7), server_momentum=0.0)
    first, second = (identify({"trial": FederatedTrial("a", "b", "c", one).to_record()}) for one in (settings, other))
    assert first == second
    averaging = FederatedTrial("a", "b", "c", replace(settings, algorithm="fedavg", server_momentum=0.0)).to_record()
    old = {**averaging, "settings": {k: v for k, v in averaging["settings"].items() if k != "server_momentum"}}
    assert identify({"trial": averaging}) == identify({"trial": old})
