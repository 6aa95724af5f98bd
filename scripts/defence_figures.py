"""Write short findings on defences from the committed journals, for the table of docs/which-defence.md."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from gradveil.audit import AUDIT_VERSION
from gradveil.experiments import federated, hide_lines, told_tables
from gradveil.experiments.defence_tables import CONTROL, PHASES, ArmLine, make_lines
from gradveil.experiments.defences import PARTS
from gradveil.experiments.federated_leak import ROUNDS, LeakTrial, cells, trials
from gradveil.experiments.federated_tables import find_entry
from gradveil.experiments.leak_tables import SHORT, find_entries, name_arm, name_place
from gradveil.experiments.policies_hide import name_attack
from gradveil.experiments.verdict_tables import describe_power
from gradveil.experiments.versions import version_of, versions_of
from gradveil.journal import Journal
from scripts.readme_table import read_audit

MEASURED = Path(__file__).parents[1] / "docs" / "measured"
SMALL = "lenet-relu"
Entry = Mapping[str, Any]


@cache
def read(name: str) -> tuple[Entry, ...]:
    """Read a journal, checking its seals."""
    return tuple(Journal(MEASURED / name).read())


def mark(entries: Sequence[Entry]) -> str:
    """Mark figures of an earlier version of the audit."""
    versions = {version_of(versions_of(entry)) for entry in entries}
    if len(versions) != 1:
        raise SystemExit(f"lines of several versions of the audit: {sorted(versions)}")
    version = versions.pop()
    return "" if version == AUDIT_VERSION else f", v{version}"


@cache
def arm_line(arm: str, part: str = "bundled") -> ArmLine:
    """Return what was measured of an arm in the table of all defences."""
    lines = make_lines(list(PARTS[part]()), read("defences/journal.jsonl"))
    return next(line for line in lines if isinstance(line, ArmLine) and line.arm == arm)


def accuracy_of(arm: str, part: str = "bundled") -> str:
    return f"{100 * mean(arm_line(arm, part).accuracies):.1f}%"


def points(arm: str) -> float:
    """Return how many points of accuracy an arm costs."""
    return 100 * (mean(arm_line(CONTROL).accuracies) - mean(arm_line(arm).accuracies))


def cost(arm: str) -> str:
    """Write the accuracy of an arm and of its control, over the seeds."""
    seeds, old = len(arm_line(arm).accuracies), mark(read("defences/journal.jsonl"))
    return f"{accuracy_of(arm)}; `{CONTROL}` {accuracy_of(CONTROL)}; {seeds} seeds{old}"


def finding(arm: str) -> str:
    """Write what the table of all defences found, before and after training."""
    line = arm_line(arm)
    before, after = (line.figures(phase).finding for phase in PHASES)
    count, old = len(line.rows["final"]), mark(read("defences/journal.jsonl"))
    told = f"{before} before and after training" if before == after else f"{before} before training, {after} after it"
    return f"{told}, n = {count}{old}"


def promise(arm: str) -> str:
    """Write what differential privacy promises."""
    line = arm_line(arm)
    return f"ε of the training {line.epsilon:.3g}; at most {line.bound:.1%} where chance is 1%, from one release"


def reached(arm: str) -> str:
    """Write how many images the study of the verdict's power reached."""
    entries = [entry for entry in read("verdict/journal.jsonl") if entry["part"] == "power"]
    keys = [(cell["arm"], cell["phase"]) for cell in entries[0]["cells"]]
    shares = [describe_power(keys.index((arm, phase)), (arm, phase), (), entries)[3] for phase in PHASES]
    return f"reached {shares[0]} images before training, {shares[1]} after it{mark(entries)}"


def rounds(update: str, arm: str, model: str = SMALL) -> str:
    """Write how many images of a round the server reached, round by round."""
    cell = next(
        one for one in cells() if (one.update, name_arm(one), name_place(one)) == (update, arm, f"{model}, train")
    )
    found = find_entries(trials(), read("federated-accuracy/leak.jsonl"))
    entries = [found[LeakTrial(cell, number)] for number in sorted(ROUNDS)]
    summaries = [entry["summary"] for entry in entries]
    counts = [f"{one['share']['reached']}" for one in summaries]
    words = [SHORT.get(one["outcome"], one["outcome"]) for one in summaries]
    verdict = words[0] if len(set(words)) == 1 else ", ".join(words)
    numbers = join([str(number) for number in sorted(ROUNDS)])
    asked = summaries[0]["share"]["images"]
    return f"{update}: {join(counts)} of {asked} reached in rounds {numbers}: {verdict}{mark(entries)}"


def picked(arm: str, attack: str, folder: str = "policies-hide") -> str:
    """Write how often an attacker who knows the arm picks out the original."""
    entries = [name_attack(entry) for entry in read(f"{folder}/journal.jsonl")]
    lines = [line for line in hide_lines.make_lines(entries) if (line.cell.arm, line.cell.attack) == (arm, attack)]
    before, after = (next(line for line in lines if line.cell.phase == phase) for phase in PHASES)
    shares = [f"{100 * line.identified.found / line.identified.count:.0f}%" for line in (before, after)]
    found = f"`{attack}` picks out {shares[0]} before and {shares[1]} after training"
    return f"{found}, n = {after.identified.count}{mark(entries)}"


def hide_accuracy(arm: str) -> str:
    """Write the accuracies of the study of what policies hide."""
    lines = hide_lines.make_lines(read("policies-hide/journal.jsonl"))
    own, control = (next(line for line in lines if line.cell.arm == one).accuracies for one in (arm, CONTROL))
    return f"{100 * mean(own):.0f}%; `{CONTROL}` {100 * mean(control):.0f}%; 1 seed"


def told(arm: str, attack: str, knows: bool = True) -> str:
    """Write how often an attacker picks out the image, who is told the defence or not, and the verdict."""
    entries = read("told-defences/journal.jsonl")
    lines = [
        line for line in told_tables.make_lines(entries) if (line.arm, line.attack, line.told) == (arm, attack, knows)
    ]
    before, after = (next(line for line in lines if line.phase == phase) for phase in PHASES)
    shares = [f"{100 * line.identified / line.original.count:.0f}%" for line in (before, after)]
    outcomes = [SHORT.get(line.outcome, line.outcome) for line in (before, after)]
    words = ", ".join(dict.fromkeys(outcomes))
    found = f"`{attack}` picks out {shares[0]} before and {shares[1]} after training"
    return f"{found}, n = {after.original.count}: {words}{mark(entries)}"


def audited(arm: str) -> str:
    """Write how often the kept audit of 64 images picks out the original after training."""
    audit = read_audit(1)
    summary = next(one for one in audit["summaries"] if (one["arm"], one["phase"]) == (arm, "final"))
    rate = summary["identification_original"]
    share = f"{rate['found'] / rate['images']:.0%}"
    return f"`{summary['attack']}` picks out {share} after training, n = {rate['images']}{mark([audit])}"


def told_accuracy(arm: str) -> str:
    """Write the accuracies of the study of told attackers."""
    found = {entry["trial"]["arm"]: entry["test_accuracy"] for entry in read("told-defences/journal.jsonl")}
    return f"{found[arm]:.1%}; `none` {found['none']:.1%}; 1 seed"


def refused(defence: str) -> str:
    """Write how often the gate refused an update, on images that nothing was chosen on."""
    wanted = {"part": "shown", "defence": defence}
    shown = [one for one in read("gate/journal.jsonl") if wanted.items() <= one["trial"].items()]
    count = sum(one["refused"] for one in shown)
    return f"of {len(shown)} updates of one image, short attacks got more than 3 dB over chance from {count}"


def together(column: str) -> str:
    """Write the accuracy of one way to train together."""
    trial = next(one for one in federated.accuracy() if (one.row, one.column) == (f"{SMALL}, {CONTROL}", column))
    entry = find_entry(trial, read("federated-accuracy/journal.jsonl"))
    assert entry is not None
    return f"{entry['test_accuracy']:.1%}"


def batch(attack: str, model: str, mode: str = "eval") -> str:
    """Write how many images of batches of 8 were rebuilt of a trained model."""
    wanted = {"attack": attack, "model": model, "mode": mode, "phase": "final", "batch": 8, "steps": None}
    entry = next(one for one in read("batches/journal.jsonl") if wanted.items() <= one["cell"].items())
    summary = entry["summary"]
    return f"{summary['share']['reached']} of {summary['images']} on `{model}`{mark([entry])}"


def join(words: Sequence[str]) -> str:
    """Join words with commas and "and".

    >>> join(["1", "50", "200"])
    '1, 50 and 200'
    """
    return f"{', '.join(words[:-1])} and {words[-1]}"
