"""The tables of the study of local steps, from its journal."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradveil.experiments.leak_tables import write_interval
from gradveil.experiments.local_steps import (
    DEVIATIONS,
    IMAGES,
    NearnessTrial,
    OrderTrial,
    SightingTrial,
    Trial,
    find_line,
    nearness,
    order,
    sightings,
)
from gradveil.experiments.markdown import write_table

Entries = Sequence[Mapping[str, Any]]


def render_markdown(entries: Entries) -> str:
    """Write the tables of all parts; what was not run is counted below each."""
    parts = {
        "Order of the images unknown": (ORDER, list(order())),
        "Several sightings": (SIGHTINGS, list(sightings())),
        "How near a guess must be": (NEARNESS, list(nearness())),
    }
    lines = []
    for title, (columns, trials) in parts.items():
        lines += [f"## {title}", "", *make_table(columns, trials, entries), ""]
    return "\n".join(lines)


ORDER = ("local steps", "images a step", "images a client", "attack", "n", "advantage, dB", "reached", "verdict", "s")
SIGHTINGS = ("arm", "attack", "rounds", "n", "advantage at T(x), dB", "advantage at x, dB", "reached", "verdict")
NEARNESS = ("model, mode", "n", "gradient", *(f"noise {deviation:g}" for deviation in DEVIATIONS))


def make_table(columns: Sequence[str], trials: Sequence[Trial], entries: Entries) -> list[str]:
    """Lay out what was run."""
    found = [(trial, find_line(trial, entries)) for trial in trials]
    rows = [row for trial, line in found if line is not None for row in write_rows(trial, line)]
    done = sum(line is not None for _, line in found)
    return [*write_table(columns, rows), "", f"{done} of {len(found)} trials were run."]


def write_rows(trial: Trial, line: Mapping[str, Any]) -> list[list[str]]:
    """Write the rows of one trial."""
    if isinstance(trial, NearnessTrial):
        named = {"whole": "whole", "last_layer": "last layer"}
        return [
            [trial.name.removesuffix(" mode"), str(IMAGES), word, *means(line[name])] for name, word in named.items()
        ]
    summary = line["summary"]
    figures, share = summary["figures"], summary["share"]
    reached = "–" if share is None else f"{share['reached']} of {share['images']}"
    counted, outcome = str(summary["images"]), str(summary["outcome"])
    if isinstance(trial, OrderTrial):
        gained = write_interval(figures["advantage_transformed"])
        work = [str(trial.steps), str(trial.batch), str(trial.owned), f"`{trial.attack}`"]
        return [[*work, counted, gained, reached, outcome, f"{line['seconds']:.0f}"]]
    assert isinstance(trial, SightingTrial)
    gains = [write_interval(figures[name]) for name in ("advantage_transformed", "advantage_original")]
    arm = trial.arm.removesuffix(",no-base")
    return [[f"`{arm}`", f"`{trial.attack}`", str(trial.rounds), counted, *gains, reached, outcome]]


def means(rows: Sequence[Sequence[float]]) -> list[str]:
    """Average each column."""
    return [f"{sum(column) / len(column):.2g}" for column in zip(*rows, strict=True)]
