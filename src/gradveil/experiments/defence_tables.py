"""The table of privacy and accuracy, and the points of its picture, from the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.audit import Row
from gradveil.audit.summary import Summary, summarise_cell
from gradveil.experiments.attack_tables import write
from gradveil.metrics import Interval, mean_interval
from gradveil.reports.pareto import Point

PHASES = ("init", "final")
RANDOM = "random-policy"
COLUMNS = (
    "arm",
    "seeds",
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
    """One arm over its seeds, or the random policies together."""

    arm: str
    accuracy: Interval
    advantages: Mapping[str, Interval | None]
    worst: Mapping[str, float | None]
    seeds: int
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
            f"{self.seeds}",
            percent(self.accuracy),
            *figures,
            f"{self.images}" + (f", {self.failed} failed" if self.failed else ""),
            "–" if plain_seconds is None else f"{self.seconds / plain_seconds:.1f}×",
            "–" if self.epsilon is None else f"{self.epsilon:.3g}",
        ]


def percent(figure: Interval) -> str:
    """Write the mean accuracy with the standard deviation over trials; one alone has none."""
    return f"{100 * figure.mean:.1f}" + ("" if figure.std is None else f" ± {100 * figure.std:.1f}")


def make_lines(entries: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Gather the trials of one part under their arms, in the order in which they stand."""
    arms: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        name = entry["trial"]["arm"]
        arms.setdefault(RANDOM if name.startswith(RANDOM) else name, []).append(entry)
    return [make_line(arm, trials) for arm, trials in arms.items()]


def make_line(arm: str, trials: Sequence[Mapping[str, Any]]) -> Line:
    """Pool the images of an arm's seeds; of random policies, average the policies' means."""
    summaries = {phase: summarise_phase(arm, phase, trials) for phase in PHASES}
    advantages = {phase: summary.advantage for phase, summary in summaries.items()}
    if arm == RANDOM:
        advantages = {phase: mean_of_means(phase, trials) for phase in PHASES}
    guarantee = trials[0]["notes"]["training"]
    return Line(
        arm,
        mean_interval([trial["test_accuracy"] for trial in trials]),
        advantages,
        {phase: summary.worst_advantage for phase, summary in summaries.items()},
        len({trial["trial"]["seed"] for trial in trials}),
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


def make_points(lines: Sequence[Line], phase: str) -> list[Point]:
    """Place every arm whose attack gave a result."""
    found = [(line, line.advantages[phase]) for line in lines]
    return [Point(line.arm, figure.mean, line.accuracy.mean) for line, figure in found if figure is not None]


def render_markdown(parts: Mapping[str, Sequence[Line]], study: Mapping[str, Any]) -> str:
    """Write one table for each part."""
    text = [
        "# Privacy and accuracy under every defence",
        "",
        f"Attack: {study['attack']}, told the defence. Advantage over chance: the larger of that for T(x) and for "
        "aligned x, mean ± half the 95% interval over images (over policies for random-policy), and that of the worst "
        "image. Accuracy: mean ± standard deviation over seeds (over policies for random-policy). Training time: in "
        "times that of crop-flip.",
        "",
    ]
    for part, lines in parts.items():
        plain = next((line.seconds for line in lines if line.arm == "crop-flip"), None)
        text += [f"## {part}", "", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
        text += ["| " + " | ".join(line.texts(plain)) + " |" for line in lines]
        text.append("")
    return "\n".join(text)
