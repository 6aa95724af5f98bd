"""Flower's simulation: a client whose actor dies is dropped too."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from pathlib import Path
from gradveil.federated import ParticipantApp
from gradveil.federated.coordinator import Coordinator, Recording
from gradveil.federated.outcomes import TooFewRepliesError
from gradveil.federated.ray_engine import run_on_ray
from tests.federated.scenes import Misbehaving, kill_process, make_participants

class Fatal(Coordinator):
    def make_app(self, participants):
        return Misbehaving(ParticipantApp(participants), 1, kill_process)

if __name__ == "__main__":
    try:
        run_on_ray(Fatal(make_participants(clients=2, least_valid=2, timeout=300.0), Path({folder!r}), Recording()), 2)
    except TooFewRepliesError as error:
        print(error)
"""


@pytest.mark.slow
def test_an_actor_that_dies_is_dropped_and_too_few_replies_stop_the_run(tmp_path: Path) -> None:
    """With Flower's own strategy such a run goes on to the end, with exit code 0."""
    (tmp_path / "script.py").write_text(SCRIPT.format(folder=str(tmp_path)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], env=environment, check=False, capture_output=True, text=True
    )
    assert "round 1 stopped: 1 of 2 replies are valid" in ended.stdout, ended.stderr
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [line["valid"] for line in lines] == [1]
    assert "actor died" in lines[0]["dropped"][0]["reason"]
