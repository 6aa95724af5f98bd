"""A few trials of the kill harness, at file operations, so that none depends on timing; and that it sees faults."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.kill_runs import list_open
from tests.faults.kills import AT_A_FILE, Plan, Trial, check_nothing_left, check_stop
from tests.faults.processes import Ended, FaultError, Place
from tests.faults.scenarios import differences, read_result

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, sys
from tests.faults import kills
from tests.faults.kills import AT_A_FILE, Plan
from tests.faults.places import lock_folder

kills.measure_start_up = lambda root, reference: 0.0  # no real process is cut here
plans = [
    Plan("train", ("SIGKILL", "SIGTERM"), (0.6, 0.3), AT_A_FILE, False),
    Plan("audit of a capsule", ("SIGINT",), (0.5,), AT_A_FILE, False),
    Plan("federate", ("SIGKILL",), (0.5,), AT_A_FILE, False),
]
with kills.prepared_stage(["train", "audit of a capsule", "federate"]) as stage:
    trials = [kills.run_trial(stage, plan) for plan in plans]
    trials.append(lock_folder(stage, stage.find("train"), 0))
print(json.dumps([trial.to_record() for trial in trials]))
"""
STOPPED = "gradveil: terminated; what is done is kept in x: give the same options and --resume to go on\n"


@pytest.mark.slow
def test_commands_that_are_cut_short_end_with_the_same() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT))), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout.splitlines()[-1])
    assert [trial["fault"] for trial in trials] == [None] * 4
    assert [trial["kills"] for trial in trials] == [2, 1, 1, 1]
    assert [trial["ways"] for trial in trials] == [["--resume"], ["--overwrite"], ["--resume"], ["--resume"]]


@pytest.mark.parametrize(
    ("code", "said"),
    [(0, STOPPED), (-15, ""), (143, ""), (143, STOPPED + "Traceback"), (1, "Traceback (most recent call last):\n")],
)
def test_a_bad_end_is_seen(code: int, said: str) -> None:
    import signal

    check_stop(Ended(143, STOPPED, "", 1.0), signal.SIGTERM)
    with pytest.raises(FaultError):
        check_stop(Ended(code, said, "", 1.0), signal.SIGTERM)


def test_a_file_left_behind_is_seen(tmp_path: Path) -> None:
    place = Place(tmp_path).make()
    (place.scratch / "pymp-1").mkdir()
    check_nothing_left(place)
    (place.scratch / "pymp-1" / "images").write_bytes(b"private")
    with pytest.raises(FaultError, match="pymp-1/images"):
        check_nothing_left(place)


def test_a_difference_is_seen_and_times_are_none(tmp_path: Path) -> None:
    for name, seconds, accuracy in (("a", 1.0, 0.5), ("b", 2.0, 0.5), ("c", 1.0, 0.6)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.json").write_text(json.dumps({"seconds": seconds, "made": {"accuracy": accuracy}}))
    results = {name: read_result(tmp_path / name) for name in "abc"}
    assert differences(results["a"], results["b"]) == []
    assert differences(results["a"], results["c"]) == ["train.json"]
    assert differences(results["a"], {}) == ["train.json"]


def test_what_failed_is_tried_again() -> None:
    trial = Trial(Plan("train", ("SIGKILL",), (0.5,), AT_A_FILE, False), kills=1)
    good = {"kind": "signals", "seed": 1, **trial.to_record()}
    bad = {**good, "seed": 2, "fault": "it hangs"}
    assert list_open([good, bad]) == [("signals", 2)]
    assert list_open([good, bad, {**bad, "fault": None}]) == []
