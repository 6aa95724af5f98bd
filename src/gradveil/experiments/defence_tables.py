"""The tables of privacy and accuracy, and the points of their picture, from the journal."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from gradveil.experiments.defences import DefenceTrial
from gradveil.experiments.markdown import write_table
from gradveil.experiments.old_rows import (
    Finding,
    Row,
    Target,
    advantage,
    compare,
    count_striking,
    judge,
    pool,
    sound,
    write_figure,
)
from gradveil.metrics import ClusterInterval, paired_interval
from gradveil.reports import Point

PHASES = {"init": "the first weights", "final": "the last weights"}
TARGETS: dict[Target, str] = {"fed": "what the model was fed, T(x)", "original": "the original x, aligned"}
CONTROL = "crop-flip"
RANDOM = "random-policy"
LEAK_COLUMNS = (
    *("arm", "n", "init: T(x)", "init: x", "≥ 3 dB", "init"),
    *("end: T(x)", "end: x", "≥ 3 dB", "end"),
)
COST_COLUMNS = ("arm", "trials", "test accuracy, %", "training time", "ε of training", "bound")
PAIR_COLUMNS = ("arm", "n", "init: T(x)", "init: x", "end: T(x)", "end: x")
READING = (
    "T(x), x: the attack's advantage over chance in dB for what the model was fed, and for the original with "
    "flip, shift and lighting given away: mean ± half the 95% interval over the means of seeds (policies for "
    "random-policy; images where there is one seed, and then it speaks of that one model), never narrower than "
    "over images; the median in brackets. Leak: a lower bound is above 1 dB. No leak found would need both upper "
    'bounds below 1 dB on 32 images or more; all else is undecided. "≥ 3 dB" counts images, for T(x) · x, and is '
    "no finding."
)
Clustered = Sequence[tuple[str, Row]]


@dataclass(frozen=True, eq=False)
class PhaseFigures:
    """What the attack gained under one arm in one phase: intervals and striking images by target, and the finding."""

    advantages: Mapping[Target, ClusterInterval | None]
    striking: Mapping[Target, int]
    finding: Finding

    def texts(self) -> list[str]:
        figures = [write_figure(figure, signed=True) for figure in self.advantages.values()]
        return [*figures, " · ".join(map(str, self.striking.values())), self.finding]


@dataclass(frozen=True, eq=False)
class ArmLine:
    """One arm over its seeds, or the random policies together; `asked` is how many trials it was to have, and so
    many of them `diverged` in training. `rows` are those of each phase, each with its cluster.
    """

    arm: str
    asked: int
    diverged: int
    accuracies: tuple[float, ...]
    rows: Mapping[str, Clustered]
    seconds: float
    epsilon: float | None
    bound: float | None

    def figures(self, phase: str) -> PhaseFigures:
        """Pool the images of one phase."""
        clustered = self.rows[phase]
        rows = [row for _, row in clustered]
        advantages = {target: pool(clustered, target) for target in TARGETS}
        finding = judge(advantages["fed"], advantages["original"], len(rows) - len(sound(rows)))
        return PhaseFigures(advantages, {target: count_striking(rows, target) for target in TARGETS}, finding)

    def against(self, control: "ArmLine", phase: str, target: Target) -> ClusterInterval | None:
        """Compare with the control image by image, where seed and image are the same."""
        base = {(row["seed"], row["image"]): advantage(row, target) for row in sound_rows(control.rows[phase])}
        ours, theirs = {}, {}
        for cluster, row in self.rows[phase]:
            if row["status"] == "ok" and (row["seed"], row["image"]) in base:
                ours[cluster, row["image"]] = advantage(row, target)
                theirs[cluster, row["image"]] = base[row["seed"], row["image"]]
        return paired_interval(ours, theirs)

    def leak_texts(self) -> list[str]:
        """Write what leaks."""
        failed = sum(row["status"] != "ok" for rows in self.rows.values() for _, row in rows)
        count = f"{len(self.rows['final'])}" + (f", {failed} failed" if failed else "")
        return [f"`{self.arm}`", count, *(text for phase in PHASES for text in self.figures(phase).texts())]

    def cost_texts(self, plain_seconds: float | None) -> list[str]:
        """Write what it costs; the training time is in times that of crop-flip."""
        trials = f"{len(self.accuracies)}" + ("" if len(self.accuracies) == self.asked else f" of {self.asked}")
        return [
            f"`{self.arm}`",
            trials + (f", {self.diverged} diverged" if self.diverged else ""),
            percent(self.accuracies),
            "–" if plain_seconds is None else f"{self.seconds / plain_seconds:.1f}×",
            "–" if self.epsilon is None else f"{self.epsilon:.3g}",
            "–" if self.bound is None else f"{self.bound:.1%}",
        ]


@dataclass(frozen=True)
class Missing:
    """An arm of which nothing was run, or whose training came to nothing so many times."""

    arm: str
    asked: int
    diverged: int = 0

    def text(self) -> str:
        return f"`{self.arm}`" + (f" ({self.diverged} diverged)" if self.diverged else "")


def sound_rows(clustered: Clustered) -> list[Row]:
    return sound([row for _, row in clustered])


def percent(accuracies: Sequence[float]) -> str:
    """Write the mean accuracy with the least and the greatest of the trials.

    >>> percent([0.8, 0.9]), percent([0.8])
    ('85.0 (80.0 to 90.0)', '80.0')
    """
    text = f"{100 * mean(accuracies):.1f}"
    return text if len(accuracies) == 1 else f"{text} ({100 * min(accuracies):.1f} to {100 * max(accuracies):.1f})"


def make_lines(trials: Sequence[DefenceTrial], entries: Sequence[Mapping[str, Any]]) -> list[ArmLine | Missing]:
    """Gather what was run under the arms that were asked for, in their order."""
    asked = Counter(name_of(trial.arm) for trial in trials)
    wanted = [trial.to_record() for trial in trials]
    run: dict[str, list[Mapping[str, Any]]] = {arm: [] for arm in asked}
    for entry in entries:
        if entry["trial"] in wanted:
            run[name_of(entry["trial"]["arm"])].append(entry)
    lines: list[ArmLine | Missing] = []
    for arm, all_found in run.items():
        found = [entry for entry in all_found if "diverged" not in entry]
        diverged = len(all_found) - len(found)
        lines.append(make_line(arm, asked[arm], diverged, found) if found else Missing(arm, asked[arm], diverged))
    return lines


def name_of(arm: str) -> str:
    return RANDOM if arm.startswith(RANDOM) else arm


def make_line(arm: str, asked: int, diverged: int, trials: Sequence[Mapping[str, Any]]) -> ArmLine:
    """Put the trials of an arm together; a cluster is a seed, of random policies a policy."""
    notes = trials[0]["notes"]
    return ArmLine(
        arm,
        asked,
        diverged,
        tuple(trial["test_accuracy"] for trial in trials),
        {phase: list(cluster_rows(phase, trials)) for phase in PHASES},
        # Of other work on the machine, the median feels least.
        median(trial["training_seconds"] for trial in trials),
        None if notes["training"] is None else notes["training"]["epsilon"],
        notes["bound"],
    )


def cluster_rows(phase: str, trials: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Row]]:
    """Take the rows of one phase with their cluster, and note the seed in each: it decides the images."""
    for entry in trials:
        trial = entry["trial"]
        for row in entry["rows"]:
            if row["phase"] == phase:
                yield f"{trial['arm']}, seed {trial['seed']}", {**row, "seed": trial["seed"]}


def make_panels(lines: Sequence[ArmLine | Missing]) -> dict[str, list[Point]]:
    """Make the panels of the picture: what was fed and the original, before and after training."""
    run = [line for line in lines if isinstance(line, ArmLine)]
    return {
        f"{when}: {what}": [
            make_point(line, figure) for line in run if (figure := line.figures(phase).advantages[target]) is not None
        ]
        for phase, when in PHASES.items()
        for target, what in TARGETS.items()
    }


def make_point(line: ArmLine, figure: ClusterInterval) -> Point:
    """Place an arm; without an interval its point has no bar."""
    return Point(line.arm, figure.mean, mean(line.accuracies), 0.0 if figure.low is None else figure.mean - figure.low)


def render_markdown(
    parts: Mapping[str, Sequence[DefenceTrial]],
    lines: Mapping[str, Sequence[ArmLine | Missing]],
    study: Mapping[str, Any],
) -> str:
    """Write what leaks, what differs from crop-flip, and what it costs, part by part."""
    text = ["# Privacy and accuracy under every defence", "", READING, ""]
    for part, found in lines.items():
        run = [line for line in found if isinstance(line, ArmLine)]
        text += [f"## {part}", "", describe_part(parts[part], study), ""]
        text += [*write_table(LEAK_COLUMNS, [line.leak_texts() for line in run]), ""]
        missing = [line.text() for line in found if isinstance(line, Missing)]
        text += [f"Not run, or diverged: {', '.join(missing)}.", ""] if missing else []
        text += render_differences(part, run) + render_costs(part, run)
    return "\n".join(text)


def render_differences(part: str, run: Sequence[ArmLine]) -> list[str]:
    """Compare every arm with crop-flip on the same images.

    Random policies are left out: all of them share two images, so the control's own error would count ten times.
    """
    control = next((line for line in run if line.arm == CONTROL), None)
    if control is None:
        return []
    rows = []
    for line in run:
        if line is not control and line.arm != RANDOM:
            pairs = [line.against(control, phase, target) for phase in PHASES for target in TARGETS]
            count = max((pair.count for pair in pairs if pair is not None), default=0)
            rows.append([f"`{line.arm}`", str(count), *map(compare, pairs)])
    head = f"### {part}: against crop-flip, image by image"
    reading = (
        "Difference of the advantages in dB, same seeds and images. Not shown: the interval includes zero. Chance "
        "alone shows about one difference in twenty."
    )
    return [head, "", reading, "", *write_table(PAIR_COLUMNS, rows), ""]


def render_costs(part: str, run: Sequence[ArmLine]) -> list[str]:
    """Write accuracy, time and what is promised."""
    plain = next((line.seconds for line in run if line.arm == CONTROL), None)
    head = f"### {part}: what it costs"
    reading = (
        "Accuracy: mean (least to greatest) over trials; a trial is one seed, of random-policy one policy. "
        "Training time: in times that of crop-flip, medians over trials. Bound: what any attacker can reach from "
        "the one release where chance is 1%."
    )
    return [head, "", reading, "", *write_table(COST_COLUMNS, [line.cost_texts(plain) for line in run]), ""]


def describe_part(trials: Sequence[DefenceTrial], study: Mapping[str, Any]) -> str:
    """Say what was trained and attacked, and with how many steps; the study's overrule those of the trials."""
    models = ", ".join(dict.fromkeys(f"`{trial.model}` on {trial.fraction:.0%} of the images" for trial in trials))
    own = {trial.steps if study["steps"] is None else study["steps"] for trial in trials}
    taken = "its own number of steps" if own == {None} else f"{max(filter(None, own))} steps for each member"
    return f"{models}; the attack `{study['attack']}`, told the defence, has {taken}."
