"""The best policies, attacked and trained with; what the journal holds is not done again."""

from pathlib import Path

import pytest

from gradveil.data import DataSet
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.metrics import mean_interval
from gradveil.search import ValidatedPolicy, Validation, run_search
from gradveil.training import Checkpoint
from tests.search.runs import SMALL, read_lines

QUICK = Validation(1, "fast", images=1, steps=2)


def test_the_best_policy_is_tried_once_beside_a_control(
    sample: DataSet, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    found = run_search(SMALL, sample, tmp_path / "run", checkpoint=checkpoint, validation=QUICK)
    control, best = found.validated
    assert (control.policy, best.policy) == ("none", found.policies[0])
    assert control.privacy_score > best.privacy_score
    assert best.accuracy_score == found.outcome.kept[0].accuracy_score
    assert 0 <= best.test_accuracy <= 1
    written = read_lines(tmp_path / "run")
    again = run_search(SMALL, sample, tmp_path / "run", resume=True, checkpoint=checkpoint, validation=QUICK)
    assert again.validated == found.validated
    assert read_lines(tmp_path / "run") == written


def test_nonsense_is_refused() -> None:
    with pytest.raises(SettingsError, match="0 policies or more"):
        Validation(-1)
    with pytest.raises(SettingsError, match="1 image or more"):
        Validation(1, images=0)
    with pytest.raises(UnknownNameError, match="magic"):
        Validation(1, "magic")


def test_a_failed_attack_is_no_figure() -> None:
    failed = ValidatedPolicy("18", 0.5, -1.5, None, "failed", 0.9).to_record()
    assert (failed["advantage"], failed["advantage_high"], failed["images"]) == (None, None, 0)
    record = ValidatedPolicy("18", 0.5, -1.5, mean_interval([1.0, 2.0]), "leaks", 0.9).to_record()
    assert (record["privacy"], record["accuracy"], record["advantage"], record["images"]) == (0.5, -1.5, 1.5, 2)
