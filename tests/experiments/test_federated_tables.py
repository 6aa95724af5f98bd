"""The tables of collaborative training."""

from typing import Any

from gradveil.experiments.federated import CentralSettings, FederatedTrial
from gradveil.experiments.federated_tables import render_markdown
from gradveil.federated import FederatedSettings

ALONE = FederatedTrial("accuracy", "lenet", "alone", CentralSettings())
TOGETHER = FederatedTrial("accuracy", "lenet", "together", FederatedSettings())
MADE = {"gradveil": "0.1.0", "torch": "2", "cores": 2, "processor": "a processor"}


def line(trial: FederatedTrial, **figures: Any) -> dict[str, Any]:
    return {"trial": trial.to_record(), "provenance": MADE, **figures}


def test_a_training_that_was_not_run_says_so() -> None:
    entries = [line(ALONE, test_accuracy=0.861, steps_in_a_row=936, seconds=7.4)]
    text = render_markdown({"accuracy": [ALONE, TOGETHER]}, entries)
    assert "| lenet | 86.1% (936 steps, 7 s) | not run |" in text
    assert "1 of 2 trainings were run, once each, seed 0, one thread." in text
    assert "2 cores, a processor." in text


def test_a_training_that_diverged_says_so() -> None:
    text = render_markdown({"accuracy": [ALONE, TOGETHER]}, [line(TOGETHER, diverged="at step 3")])
    assert "| lenet | not run | diverged |" in text
