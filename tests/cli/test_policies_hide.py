"""The command of the policies-hide study: which trials it runs, and what it goes on with."""

from pathlib import Path

import click
import pytest

from gradveil.cli.policies_hide import choose_trials
from gradveil.cli.study_folders import prepare_folder
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.experiments.policies_hide import RUN, HideTrial
from gradveil.journal import Journal

ANY = {"arm": None, "attack": None, "model": None}


def test_trials_are_chosen_by_arm_attack_and_model() -> None:
    chosen = choose_trials({"arm": ["none"], "attack": ["both"], "model": ["lenet-relu"]}, 2, 7)
    assert [(one.arm, one.attack, one.model, one.seed, one.images) for one in chosen] == [
        ("none", "both", "lenet-relu", seed, 7) for seed in (0, 1)
    ]
    assert {one.images for one in choose_trials(ANY, 3, None)} == {200, 32, 20}
    with pytest.raises(UnknownNameError, match="nope"):
        choose_trials({**ANY, "attack": ["nope"]}, 3, None)


def test_a_study_goes_on_with_its_own_lines_and_not_with_others(tmp_path: Path) -> None:
    trial = HideTrial("none", 0)
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append({"trial": trial.to_record(), "study": {"data": "some", **trial.versions()}})
    with click.Context(click.Command("policies-hide")):
        prepare_folder(tmp_path, table=False, fields=["trial"], study="policies-hide", versions=RUN)
    journal.append({"trial": trial.to_record(), "study": {**trial.versions(), "standard_version": 6}})
    with pytest.raises(SettingsError, match="standard_version 6"):
        prepare_folder(tmp_path, table=False, fields=["trial"], study="policies-hide", versions=RUN)
