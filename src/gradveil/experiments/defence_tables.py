"""The table of privacy and accuracy, and the points of its picture, from the journal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.audit import Row
from gradveil.audit.summary import Summary, summarise_cell
from gradveil.experiments.attack_tables import write
from gradveil.experiments.defences import Trial
from gradveil.metrics import Interval, mean_interval
from gradveil.reports.pareto import Point

PHASES = ("init", "final")
RANDOM = "random-policy"
COLUMNS = (
    "arm",
    "trials",
    "test accuracy, %",
    "advantage at init, dB",
    "worst",
    "advantage at the end, dB",
    "worst",
    "n",
    "training time",
    "ε of training",
)


@dataclass(frozen=True, eq=False)
class Line:
    """One arm over its seeds, or the random policies together; `asked` is how many trials it was to have, and so
    many of them `diverged` in training.
    """

    arm: str
    asked: int
    diverged: int
    trials: int
    accuracy: Interval
    advantages: Mapping[str, Interval | None]
    worst: Mapping[str, float | None]
    images: int
    failed: int
    seconds: float
    epsilon: float | None

    def texts(self, plain_seconds: float | None) -> list[str]:
        """Write the line as the table shows it; the training time is in times that of crop-flip."""
        figures = []
        for phase in PHASES:
            worst = self.worst[phase]
            figures += [write(self.advantages[phase], signed=True), "–" if worst is None else f"{worst:+.1f}"]
        return [
            f"`{self.arm}`",
            (f"{self.trials}" if self.trials == self.asked else f"{self.trials} of {self.asked}")
            + (f", {self.diverged} diverged" if self.diverged else ""),
            percent(self.accuracy),
            *figures,
            f"{self.images}" + (f", {self.failed} failed" if self.failed else ""),
            "–" if plain_seconds is None else f"{self.seconds / plain_seconds:.1f}×",
            "–" if self.epsilon is None else f"{self.epsilon:.3g}",
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


def make_lines(trials: Sequence[Trial], entries: Sequence[Mapping[str, Any]]) -> list[Line | Missing]:
    """Gather what was run under the arms that were asked for, in their order."""
    asked = Counter(name_of(trial.arm) for trial in trials)
    wanted = [trial.to_record() for trial in trials]
    run: dict[str, list[Mapping[str, Any]]] = {arm: [] for arm in asked}
    for entry in entries:
        if entry["trial"] in wanted:
            run[name_of(entry["trial"]["arm"])].append(entry)
    lines: list[Line | Missing] = []
    for arm, all_found in run.items():
        found = [entry for entry in all_found if "diverged" not in entry]
        diverged = len(all_found) - len(found)
        lines.append(make_line(arm, asked[arm], diverged, found) if found else Missing(arm, asked[arm], diverged))
    return lines


def name_of(arm: str) -> str:
    return RANDOM if arm.startswith(RANDOM) else arm


def make_line(arm: str, asked: int, diverged: int, trials: Sequence[Mapping[str, Any]]) -> Line:
    """Pool the images of an arm's seeds; of random policies, average the policies' means."""
    summaries = {phase: summarise_phase(arm, phase, trials) for phase in PHASES}
    advantages = {phase: summary.advantage for phase, summary in summaries.items()}
    if arm == RANDOM:
        advantages = {phase: mean_of_means(phase, trials) for phase in PHASES}
    guarantee = trials[0]["notes"]["training"]
    return Line(
        arm,
        asked,
        diverged,
        len(trials),
        mean_interval([trial["test_accuracy"] for trial in trials]),
        advantages,
        {phase: summary.worst_advantage for phase, summary in summaries.items()},
        summaries["final"].images,
        sum(summary.failed for summary in summaries.values()),
        sum(trial["training_seconds"] for trial in trials) / len(trials),
        None if guarantee is None else guarantee["epsilon"],
    )


def summarise_phase(arm: str, phase: str, trials: Sequence[Mapping[str, Any]]) -> Summary:
    rows = [Row(**row) for trial in trials for row in trial["rows"] if row["phase"] == phase]
    return summarise_cell(arm, phase, rows[0].attack, rows)


def mean_of_means(phase: str, trials: Sequence[Mapping[str, Any]]) -> Interval | None:
    found = [summarise_phase(trial["trial"]["arm"], phase, [trial]).advantage for trial in trials]
    means = [advantage.mean for advantage in found if advantage is not None]
    return mean_interval(means) if means else None


def make_points(lines: Sequence[Line | Missing], phase: str) -> list[Point]:
    """Place every arm whose attack gave a result."""
    found = [(line, line.advantages[phase]) for line in lines if isinstance(line, Line)]
    return [Point(line.arm, figure.mean, line.accuracy.mean) for line, figure in found if figure is not None]


def render_markdown(parts: Mapping[str, Sequence[Line | Missing]], study: Mapping[str, Any]) -> str:
    """Write one table for each part."""
    steps = "" if study["steps"] is None else f" with {study['steps']} steps for each of its members"
    text = [
        "# Privacy and accuracy under every defence",
        "",
        f"Attack: {study['attack']}{steps}, told the defence. A trial is one seed, of random-policy one policy. "
        "Advantage over chance: the larger of that for T(x) and for aligned x, mean ± half the 95% interval over "
        "images (over policies for random-policy), and that of the worst image. Accuracy: mean ± standard deviation "
        "over trials. Training time: in times that of crop-flip.",
        "",
    ]
    for part, lines in parts.items():
        plain = next((line.seconds for line in lines if isinstance(line, Line) and line.arm == "crop-flip"), None)
        text += [f"## {part}", "", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
        text += ["| " + " | ".join(line.texts(plain)) + " |" for line in lines]
        text.append("")
    return "\n".join(text)
