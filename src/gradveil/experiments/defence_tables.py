"""The table of privacy and accuracy, and the points of its picture, from the journal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median
from typing import Any

from gradveil.audit import VERSIONS, Row, Summary, summarise_cell
from gradveil.experiments.attack_tables import write_figure
from gradveil.experiments.defences import DefenceTrial
from gradveil.metrics import Interval, mean_interval
from gradveil.reports import Point

PHASES = ("init", "final")
FED, ORIGINAL = "advantage_transformed", "advantage_aligned"
RANDOM = "random-policy"
COLUMNS = (
    "arm",
    "trials",
    "test accuracy, %",
    "init: T(x)",
    "init: x",
    "worst",
    "end: T(x)",
    "end: x",
    "worst",
    "n",
    "training time",
    "ε of training",
    "bound",
)


@dataclass(frozen=True, eq=False)
class ArmLine:
    """One arm over its seeds, or the random policies together; `asked` is how many trials it was to have, and so
    many of them `diverged` in training. Advantages are, phase by phase, for T(x) and for aligned x.
    """

    arm: str
    asked: int
    diverged: int
    trials: int
    accuracy: Interval
    fed: Mapping[str, Interval | None]
    original: Mapping[str, Interval | None]
    worst: Mapping[str, float | None]
    images: int
    failed: int
    seconds: float
    epsilon: float | None
    bound: float | None

    def texts(self, plain_seconds: float | None) -> list[str]:
        """Write the line as the table shows it; the training time is in times that of crop-flip."""
        figures = []
        for phase in PHASES:
            worst = self.worst[phase]
            figures += [write_figure(figure, signed=True) for figure in (self.fed[phase], self.original[phase])]
            figures.append("–" if worst is None else f"{worst:+.1f}")
        return [
            f"`{self.arm}`",
            (f"{self.trials}" if self.trials == self.asked else f"{self.trials} of {self.asked}")
            + (f", {self.diverged} diverged" if self.diverged else ""),
            percent(self.accuracy),
            *figures,
            f"{self.images}" + (f", {self.failed} failed" if self.failed else ""),
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

    def texts(self, plain_seconds: float | None) -> list[str]:  # noqa: ARG002
        why = f"{self.diverged} diverged" if self.diverged else "not run"
        return [f"`{self.arm}`", f"0 of {self.asked}", why, *[""] * (len(COLUMNS) - 3)]


def percent(figure: Interval) -> str:
    """Write the mean accuracy with the standard deviation over trials; one alone has none."""
    return f"{100 * figure.mean:.1f}" + ("" if figure.std is None else f" ± {100 * figure.std:.1f}")


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
    """Pool the images of an arm's seeds; of random policies, average the policies' means."""
    summaries = {phase: summarise_phase(arm, phase, trials) for phase in PHASES}
    # The unit of random policies is the policy.
    units = [[trial] for trial in trials] if arm == RANDOM else [trials]
    notes = trials[0]["notes"]
    return ArmLine(
        arm,
        asked,
        diverged,
        len(trials),
        mean_interval([trial["test_accuracy"] for trial in trials]),
        {phase: pool(FED, phase, units) for phase in PHASES},
        {phase: pool(ORIGINAL, phase, units) for phase in PHASES},
        {phase: summary.worst_advantage for phase, summary in summaries.items()},
        summaries["final"].images,
        sum(summary.failed for summary in summaries.values()),
        # Of other work on the machine, the median feels least.
        median(trial["training_seconds"] for trial in trials),
        None if notes["training"] is None else notes["training"]["epsilon"],
        notes["bound"],
    )


def summarise_phase(arm: str, phase: str, trials: Sequence[Mapping[str, Any]]) -> Summary:
    rows = [Row(**row) for trial in trials for row in trial["rows"] if row["phase"] == phase]
    return summarise_cell(arm, phase, rows[0].attack, rows)


def pool(kind: str, phase: str, units: Sequence[Sequence[Mapping[str, Any]]]) -> Interval | None:
    """Take one figure over the images of all trials; with several units, over the units' means."""
    summaries = [summarise_phase(unit[0]["trial"]["arm"], phase, unit) for unit in units]
    figures = [summary.figures[kind] for summary in summaries if kind in summary.figures]
    return (
        mean_interval([figure.mean for figure in figures]) if len(units) > 1 and figures else next(iter(figures), None)
    )


def make_panels(lines: Sequence[ArmLine | Missing]) -> dict[str, list[Point]]:
    """Make the panels of the picture: what was fed and the original, before and after training."""
    run = [line for line in lines if isinstance(line, ArmLine)]
    return {
        title: make_points([(line, figures(line)[phase]) for line in run])
        for phase, when in zip(PHASES, ("the first weights", "the last weights"), strict=True)
        for title, figures in (
            (f"{when}: what the model was fed, T(x)", attrgetter("fed")),
            (f"{when}: the original x, aligned", attrgetter("original")),
        )
    }


def make_points(figures: Sequence[tuple[ArmLine, Interval | None]]) -> list[Point]:
    """Place every arm whose attack gave a result."""
    return [
        Point(line.arm, figure.mean, line.accuracy.mean, 0.0 if figure.low is None else figure.mean - figure.low)
        for line, figure in figures
        if figure is not None
    ]


def render_markdown(
    parts: Mapping[str, Sequence[DefenceTrial]],
    lines: Mapping[str, Sequence[ArmLine | Missing]],
    study: Mapping[str, Any],
) -> str:
    """Write one table for each part."""
    text = [
        "# Privacy and accuracy under every defence",
        "",
        f"Attack: {study['attack']} (`standard` is version {study['standard_version']}), told the defence. A trial is "
        "one seed, of random-policy one policy. T(x), x: the attack's advantage over chance, in dB, for what the model "
        "was fed and for the original with flip, shift and lighting given away; mean ± half the 95% interval over "
        "images (over policies for random-policy). Worst: the larger of the two for the image that lost most. "
        "Accuracy: mean ± standard deviation over trials. Training time: in times that of crop-flip, medians over "
        "trials. Bound: what any attacker can reach from the one release where chance is 1%. "
        f"Measured by version {study['audit_version']} of the audit: {VERSIONS[study['audit_version']]}.",
        "",
    ]
    for part, found in lines.items():
        plain = next((line.seconds for line in found if isinstance(line, ArmLine) and line.arm == "crop-flip"), None)
        text += [f"## {part}", "", describe_part(parts[part], study["steps"]), ""]
        text += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
        text += ["| " + " | ".join(line.texts(plain)) + " |" for line in found]
        text.append("")
    return "\n".join(text)


def describe_part(trials: Sequence[DefenceTrial], steps: int | None) -> str:
    """Say what was trained and attacked, and with how many steps; `steps` overrules those of the trials."""
    models = ", ".join(dict.fromkeys(f"`{trial.model}` on {trial.fraction:.0%} of the images" for trial in trials))
    own = {trial.steps if steps is None else steps for trial in trials}
    taken = "its own number of steps" if own == {None} else f"{max(filter(None, own))} steps for each member"
    return f"{models}; the attack has {taken}."
