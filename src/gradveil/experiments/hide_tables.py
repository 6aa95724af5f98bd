"""Does a policy hide the original from someone who knows it? The table, from the journal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.audit import VERSIONS
from gradveil.errors import SettingsError
from gradveil.experiments.policies_hide import ATTACKS, LEARNED, PHASES, trials
from gradveil.experiments.versions import CHOICE, CHOICES, KEY, name_makers
from gradveil.metrics import ClusterInterval, cluster_interval, rate_interval

COLUMNS = (
    "model",
    "attack",
    "arm",
    "phase",
    "accuracy on plain test images",
    "seeds",
    "n",
    "x as it lies, dB",
    "aligned x, dB",
    "picked out of 20",
    "swapped: dB",
    "swapped: picked out",
)
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    found: int
    count: int

    def text(self) -> str:
        """Write the share with its exact 95% interval.

        >>> Share(10, 200).text()
        '5% (2–9)'
        """
        low, high = rate_interval(self.found, self.count)
        return f"{100 * self.found / self.count:.0f}% ({100 * low:.0f}–{100 * high:.0f})"


@dataclass(frozen=True)
class HideCell:
    """What one line of the table is of."""

    model: str
    attack: str
    arm: str
    phase: str

    def holds(self, entry: Entry) -> bool:
        return trial_of(entry) == (self.model, self.attack, self.arm)


@dataclass(frozen=True)
class HideLine:
    """One model, attack and arm in one phase, all seeds together: gains over chance at x, and how often x is found."""

    cell: HideCell
    accuracies: tuple[float, ...]
    failed: int
    plain: ClusterInterval
    aligned: ClusterInterval
    identified: Share
    swapped: ClusterInterval
    swapped_identified: Share

    def texts(self) -> list[str]:
        cell = self.cell
        accuracy = "" if cell.phase == "init" else f"{100 * sum(self.accuracies) / len(self.accuracies):.0f}%"
        count = f"{self.aligned.count}" + (f" ({self.failed} failed)" if self.failed else "")
        return [
            f"`{cell.model}`",
            cell.attack,
            f"`{cell.arm}`",
            cell.phase,
            accuracy,
            f"{self.aligned.clusters}",
            count,
            self.plain.text(1, signed=True),
            self.aligned.text(1, signed=True),
            self.identified.text(),
            self.swapped.text(1, signed=True),
            self.swapped_identified.text(),
        ]


def trial_of(entry: Entry) -> tuple[str, str, str]:
    trial = entry["trial"]
    return trial["model"], trial["attack"], trial["arm"]


def make_lines(entries: Sequence[Entry]) -> list[HideLine]:
    """Put the seeds of every model, attack and arm together, in the order of the trials."""
    planned = {(one.model, one.attack, one.arm): None for one in trials()}
    found = dict.fromkeys(trial_of(entry) for entry in entries)
    arms = dict.fromkeys(arm for _, _, arm in (*planned, *found))
    order = {
        (model, attack, arm): None
        for model in dict.fromkeys(key[0] for key in found)
        for arm in arms
        for attack in ATTACKS
    }
    cells = [HideCell(*key, phase) for phase in PHASES for key in order if key in found]
    lines = (make_line(cell, [entry for entry in entries if cell.holds(entry)]) for cell in cells)
    return [line for line in lines if line is not None]


def make_line(cell: HideCell, entries: Sequence[Entry]) -> HideLine | None:
    """Put the seeds of one cell together; without any sound row there is no line."""
    every = [(entry["trial"]["seed"], row) for entry in entries for row in entry["phases"][cell.phase]["rows"]]
    rows = [(seed, row) for seed, row in every if row["status"] == "ok" and row["identified_original"] is not None]
    swapped = [(entry["trial"]["seed"], one) for entry in entries for one in entry["phases"][cell.phase]["swapped"]]
    if not rows or not swapped:
        return None
    seeds = [seed for seed, _ in rows]
    return HideLine(
        cell,
        tuple(entry["test_accuracy"] for entry in entries),
        len(every) - len(rows),
        cluster_interval([row["psnr_original"] - row["floor_original"] for _, row in rows], seeds),
        cluster_interval([row["advantage_original"] for _, row in rows], seeds),
        Share(sum(row["identified_original"] for _, row in rows), len(rows)),
        cluster_interval([one["swapped_gain"] for _, one in swapped], [seed for seed, _ in swapped]),
        Share(sum(one["swapped_identified"] for _, one in swapped), len(swapped)),
    )


def render_markdown(lines: Sequence[HideLine], entries: Sequence[Entry]) -> str:
    """Write the table, how to read it, what is missing, and where it comes from."""
    notes = dict.fromkeys(line.aligned.note for line in lines if line.aligned.note)
    return "\n".join(
        [
            "# Does a policy hide the original from someone who knows it?",
            "",
            *describe_study(entries),
            "",
            *(f"Note: {note}." for note in notes),
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + "---|" * len(COLUMNS),
            *["| " + " | ".join(line.texts()) + " |" for line in lines],
            "",
            *describe_missing(entries),
            "",
            "## Where these figures come from",
            "",
            name_versions(entries),
            "",
            *name_makers(entries),
            "",
        ]
    )


def describe_study(entries: Sequence[Entry]) -> list[str]:
    """Say how to read the table."""
    study = entries[0]["study"]
    shares = {entry["trial"]["model"]: entry["trial"] for entry in entries}
    numbers = "; ".join(
        f"`{model}`: {trial['public']:,} public images, {trial['private']:,} others that the clients train on"
        for model, trial in shares.items()
    )
    first = any(entry["study"].get(LEARNED) == 1 for entry in entries)
    crowd = "the other attacked images of its class (chance one in 19)" if first else "20 of its class (chance 5%)"
    return [
        f"{study['data']}, {study['training']['epochs']} epochs; {numbers}. Test images are attacked, one gradient of "
        "one image each. The attacker knows the arm, not its draws. `learned` learns from the public images what "
        "clients release; `matching` is the recipe `fast`; `both` matches gradients from the learnt picture on, "
        "looking for the original through every draw of a known policy. Gains are over the best guess without an "
        'update, in dB, mean ± half the 95% interval. "As it lies" compares pixel by pixel; "aligned" after the best '
        "flip, shift and lighting. Picked out: of 20 images of its class the true one fits best, by the aligned score; "
        "chance 5%; in brackets the exact 95% interval, as if all images were independent.",
        "",
        "Swapped is the wrong-gradient control: the picture rebuilt from an update against the next attacked image of "
        f"the class, its aligned gain over the class mean, and how often that image is picked out of {crowd}. "
        "A policy stands on top of crop and flip unless it says `no-base`.",
    ]


def describe_missing(entries: Sequence[Entry]) -> list[str]:
    """Say how many trials of the plan were not run."""
    fields = ("arm", "seed", "attack", "model")
    done = {tuple(entry["trial"][name] for name in fields) for entry in entries}
    missing = Counter(
        (one.model, one.attack) for one in trials() if tuple(getattr(one, name) for name in fields) not in done
    )
    if not missing:
        return ["Every trial of the plan was run."]
    return [
        "Not run (an arm with one seed is a trial): "
        + ", ".join(f"{count} of `{model}` with {attack}" for (model, attack), count in missing.items())
        + "."
    ]


def name_versions(entries: Sequence[Entry]) -> str:
    """Say which versions the table is of; lines of several versions are refused."""
    told = {
        name: {entry["study"][name] for entry in entries if name in entry["study"]} for name in (KEY, CHOICE, LEARNED)
    }
    several = [name for name, found in told.items() if len(found) > 1]
    if several:
        raise SettingsError(
            f"lines of several versions ({', '.join(several)}): a table shows one, so move the others to a folder of "
            "their own"
        )
    (audit,), (choice,) = told[KEY], told[CHOICE]
    learned = f" `learned`: version {told[LEARNED].pop()}." if told[LEARNED] else ""
    return f"Audit version {audit}: {VERSIONS[audit]}. Image choice {choice}: {CHOICES[choice]}.{learned}"
