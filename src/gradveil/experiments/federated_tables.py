"""The tables of collaborative training, from the journal."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradveil.experiments.federated import PASSES, FederatedTrial, identify
from gradveil.experiments.markdown import write_table
from gradveil.study import PROVENANCE, to_text

Entry = Mapping[str, Any]
TITLES = {
    "accuracy": "Accuracy of collaborative and centralised training",
    "gap": f"FedAvg taken apart: lenet-relu, crop and flip, {PASSES} passes over the images each",
    "choose": f"Settings of FedAvg's clients on seed 1: lenet-relu, crop and flip, 10 clients, {PASSES} passes",
}


def render_markdown(parts: Mapping[str, Sequence[FederatedTrial]], entries: Sequence[Entry]) -> str:
    """Write one table for each part; a training that was not run says so."""
    text = ["# Collaborative training", ""]
    for part, trials in parts.items():
        text += [f"## {TITLES[part]}", "", *make_table(trials, entries), "", *describe(trials, entries), ""]
    return "\n".join(text)


def make_table(trials: Sequence[FederatedTrial], entries: Sequence[Entry]) -> list[str]:
    """Lay out the final accuracies by row and column; each with the steps in a row, and the seconds."""
    columns = list(dict.fromkeys(trial.column for trial in trials))
    rows = dict.fromkeys(trial.row for trial in trials)
    lines = []
    for row in rows:
        found = {trial.column: write_cell(find_entry(trial, entries)) for trial in trials if trial.row == row}
        lines.append([row, *(found.get(column, "–") for column in columns)])
    return write_table(["training", *columns], lines)


def find_entry(trial: FederatedTrial, entries: Sequence[Entry]) -> Entry | None:
    wanted = to_text(identify({"trial": trial.to_record()}))
    return next((entry for entry in entries if to_text(identify(entry)) == wanted), None)


def write_cell(entry: Entry | None) -> str:
    """Write what came of one training."""
    if entry is None:
        return "not run"
    if "diverged" in entry:
        return "diverged"
    rounds = f"{entry['rounds']} rounds, " if "rounds" in entry else ""
    steps = f"{entry['steps_in_a_row']} steps"
    return f"{entry['test_accuracy']:.1%} ({rounds}{steps}, {entry['seconds']:.0f} s)"


def describe(trials: Sequence[FederatedTrial], entries: Sequence[Entry]) -> list[str]:
    """Say how much was run, by which version and where."""
    found = [entry for trial in trials if (entry := find_entry(trial, entries)) is not None]
    made = [entry.get(PROVENANCE) or entry["environment"] for entry in found]
    places = {
        f"gradveil {one['gradveil']}, torch {one['torch']}, {one['cores']} cores, {one['processor']}" for one in made
    }
    seeds = ", ".join(map(str, sorted({trial.settings.seed for trial in trials})))
    text = f"{len(found)} of {len(trials)} trainings were run, once each, seed {seeds}, one thread."
    return [" ".join([text, *(f"{place}." for place in sorted(places))])]
