"""What a curious server rebuilt, as tables and as a picture of leak against round."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gradveil.experiments.federated_leak import ATTACK, ROUNDS, LeakCell, LeakTrial
from gradveil.experiments.markdown import write_table
from gradveil.results import canonical

Entry = Mapping[str, Any]
TRANSFORMED, ORIGINAL = "advantage_transformed", "advantage_original"
SHORT = {"untrusted": "not trustworthy", "none-found": "none found", "some": "some leak"}
COLUMNS = (
    "update",
    "model, mode",
    "arm",
    "round",
    "n",
    "advantage at T(x), dB",
    "advantage at x, dB",
    "share reached",
    "verdict",
)


def find_entries(chosen: Sequence[LeakTrial], entries: Sequence[Entry]) -> dict[LeakTrial, Entry]:
    """Find the line of every trial that was run."""
    known = {canonical({name: entry[name] for name in chosen[0].key()}): entry for entry in entries}
    found = {trial: known.get(canonical(trial.key())) for trial in chosen}
    return {trial: entry for trial, entry in found.items() if entry is not None}


def count_attacked(chosen: Sequence[LeakTrial], found: Mapping[LeakTrial, Entry]) -> str:
    return f"{len(found)} of {len(chosen)} rounds were attacked, with `{ATTACK}`, one training each, seed 0."


def make_table(chosen: Sequence[LeakTrial], entries: Sequence[Entry]) -> list[str]:
    """Lay out what was attacked, a line for each round; what was not is counted below."""
    found = find_entries(chosen, entries)
    order = sorted(found, key=lambda one: (one.cell.update, one.cell.settings.model, one.round))
    lines = [write_line(trial, found[trial]["summary"]) for trial in order]
    return [*write_table(COLUMNS, lines), "", count_attacked(chosen, found)]


def make_overview(chosen: Sequence[LeakTrial], entries: Sequence[Entry]) -> list[str]:
    """Lay out a line for each training, the rounds side by side."""
    found = find_entries(chosen, entries)
    numbers = sorted(ROUNDS)
    columns, lines = ["update", "model, mode", "arm", *(f"round {number}" for number in numbers)], []
    for cell in dict.fromkeys(trial.cell for trial in sorted(chosen, key=lambda one: one.cell.update)):
        rounds = [found.get(LeakTrial(cell, number)) for number in numbers]
        told = [write_round(entry["summary"]) if entry else "not run" for entry in rounds]
        lines.append([cell.update, name_place(cell), f"`{name_arm(cell)}`", *told])
    return [*write_table(columns, lines), "", count_attacked(chosen, found)]


def write_round(summary: Entry) -> str:
    share, outcome = summary["share"], str(summary["outcome"])
    reached = "" if share is None else f", {share['reached']} of {share['images']}"
    return (
        f"{write_interval(summary['figures'][TRANSFORMED])} (x {summary['figures'][ORIGINAL]['mean']:+.1f})"
        f"{reached}: {SHORT.get(outcome, outcome)}"
    )


def name_place(cell: LeakCell) -> str:
    return f"{cell.settings.model}, {cell.settings.local.mode}"


def name_arm(cell: LeakCell) -> str:
    return cell.settings.arm.removesuffix(",no-base")


def write_line(trial: LeakTrial, summary: Mapping[str, Any]) -> list[str]:
    share = summary["share"]
    figures = [write_interval(summary["figures"][name]) for name in (TRANSFORMED, ORIGINAL)]
    reached = "–" if share is None else f"{share['reached']} of {share['images']}"
    counted = f"{summary['images']}" + (f", {summary['failed']} failed" if summary["failed"] else "")
    place, arm = name_place(trial.cell), f"`{name_arm(trial.cell)}`"
    return [trial.cell.update, place, arm, str(trial.round), counted, *figures, reached, str(summary["outcome"])]


def write_interval(figure: Mapping[str, Any]) -> str:
    """Write a mean with half its interval, where there is one."""
    if figure["low"] is None:
        return f"{figure['mean']:+.1f}"
    return f"{figure['mean']:+.1f} ± {half_width(figure):.1f}"


def draw_leaks(chosen: Sequence[LeakTrial], entries: Sequence[Entry]) -> bytes:
    """Draw the advantage at T(x) against the round, as a PNG: one part for each kind of update, one line a training."""
    found = find_entries(chosen, entries)
    updates = list(dict.fromkeys(trial.cell.update for trial in chosen))
    figure = Figure(figsize=(11, 7), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, update in zip(figure.subplots(2, 2).flat, updates, strict=True):
        own = [cell for cell in dict.fromkeys(trial.cell for trial in chosen) if cell.update == update]
        for cell in own:
            draw_cell(axes, cell, [trial for trial in found if trial.cell == cell], found)
        axes.set_title(update, fontsize=10)
        axes.axhline(0, color="grey", linewidth=0.8)
        axes.set_xticks(range(len(ROUNDS)), [f"round {number}" for number in sorted(ROUNDS)])
        axes.set_ylabel("advantage over chance at T(x), dB", fontsize=8)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def draw_cell(axes: Axes, cell: LeakCell, trials: Sequence[LeakTrial], found: Mapping[LeakTrial, Entry]) -> None:
    """Draw the means of one training, with their 95% intervals; hollow where the attack is not trustworthy."""
    places = sorted(ROUNDS)
    points = [(places.index(one.round), found[one]["summary"]) for one in sorted(trials, key=lambda one: one.round)]
    figures = [summary["figures"][TRANSFORMED] for _, summary in points]
    line = axes.errorbar(
        [place for place, _ in points],
        [figure["mean"] for figure in figures],
        [half_width(figure) for figure in figures],
        fmt="-",
        capsize=3,
        label=f"{name_arm(cell)}, {name_place(cell)}",
    )
    colour = line.lines[0].get_color()
    for place, summary in points:
        hollow = summary["outcome"] == "untrusted"
        axes.plot(place, summary["figures"][TRANSFORMED]["mean"], "o", color=colour, mfc="white" if hollow else colour)


def half_width(figure: Entry) -> float:
    return 0.0 if figure["low"] is None else (figure["high"] - figure["low"]) / 2
