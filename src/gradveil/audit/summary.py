"""From rows to one line per arm, phase and attack, and to a verdict in plain words."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gradveil.audit.scoring import DECIMALS, Row
from gradveil.metrics import Interval, mean_interval

Finding = Literal["leak", "leak on some images", "undecided", "no leak found", "no result"]
MARGIN = 1.0
"""dB above the floor that a mean must clear, with its whole 95% interval, to count as a leak."""
STRIKING = 3.0
"""dB above the floor at which a single image counts as leaked."""
FIGURES = (
    "psnr_transformed",
    "psnr_original",
    "psnr_aligned",
    "floor_transformed",
    "floor_original",
    "floor_aligned",
    "advantage_transformed",
    "advantage_original",
    "advantage_aligned",
    "ssim_transformed",
    "ssim_original",
)


@dataclass(frozen=True)
class Summary:
    """What one attack achieved under one arm in one phase.

    `figures` has the mean and interval of each figure. `advantage` is the larger of the mean advantage against T(x) and
    against aligned x; the finding rests on it. `worst` is the image that leaked most, `worst_advantage` by how much.
    """

    arm: str
    phase: str
    attack: str
    images: int
    failed: int
    figures: dict[str, Interval]
    advantage: Interval | None
    worst: int | None
    worst_advantage: float | None
    label_accuracy: float | None
    seconds: float
    finding: Finding

    def to_record(self) -> dict[str, Any]:
        """Return the summary as it stands in JSON."""
        record: dict[str, Any] = rounded(asdict(self))
        return record


def rounded(value: Any) -> Any:
    """Round every float in a record."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    return round(value, DECIMALS) if isinstance(value, float) else value


def summarise(rows: Sequence[Row]) -> list[Summary]:
    """Summarise each arm, phase and attack, in the order in which they stand."""
    cells: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row.arm, row.phase, row.attack), []).append(row)
    return [summarise_cell(*key, cell) for key, cell in cells.items()]


def summarise_cell(arm: str, phase: str, attack: str, rows: Sequence[Row]) -> Summary:
    """Summarise the rows of one arm, phase and attack; rows without a result are counted as failed."""
    sound = [row for row in rows if row.status == "ok"]
    failed = len(rows) - len(sound)
    seconds = sum(row.seconds for row in rows)
    if not sound:
        return Summary(arm, phase, attack, len(rows), failed, {}, None, None, None, None, seconds, "no result")
    figures = {name: mean_interval([getattr(row, name) for row in sound]) for name in FIGURES}
    advantage = max(figures["advantage_transformed"], figures["advantage_aligned"], key=lambda value: value.mean)
    worst = max(sound, key=leaked)
    labels = sum(row.label_found is True for row in sound) / len(sound)
    finding = judge(advantage, leaked(worst), failed)
    return Summary(
        arm, phase, attack, len(rows), failed, figures, advantage, worst.image, leaked(worst), labels, seconds, finding
    )


@dataclass(frozen=True)
class Pooled:
    """What one attack achieved against random policies in one phase: the mean, over policies, of their advantages."""

    phase: str
    attack: str
    policies: int
    advantage: Interval

    def to_record(self) -> dict[str, Any]:
        """Return the figures as they stand in JSON."""
        record: dict[str, Any] = rounded(asdict(self))
        return record


def pool_random_policies(summaries: Sequence[Summary]) -> tuple[Pooled, ...]:
    """Average over the arms with a random policy, where there are several: the papers' baseline has ten."""
    cells: dict[tuple[str, str], list[float]] = {}
    for summary in summaries:
        if summary.arm.startswith("random-policy:") and summary.advantage is not None:
            cells.setdefault((summary.phase, summary.attack), []).append(summary.advantage.mean)
    return tuple(Pooled(*key, len(means), mean_interval(means)) for key, means in cells.items() if len(means) > 1)


def leaked(row: Row) -> float:
    """Take the larger of a row's two advantages that count."""
    assert row.advantage_transformed is not None
    assert row.advantage_aligned is not None
    return max(row.advantage_transformed, row.advantage_aligned)


def judge(advantage: Interval, worst: float, failed: int) -> Finding:
    """Say what the figures allow to say; a failed attack is never evidence that nothing leaks."""
    if advantage.low is not None and advantage.low > MARGIN:
        return "leak"
    if worst >= STRIKING:
        return "leak on some images"
    if failed == 0 and advantage.high is not None and advantage.high < MARGIN:
        return "no leak found"
    return "undecided"


def headline(summaries: Sequence[Summary]) -> str:
    """Say the most important thing first."""
    leaks = sum(summary.finding in ("leak", "leak on some images") for summary in summaries)
    total = len(summaries)
    if leaks == total:
        return f"The shared gradients leak: in all {total} settings the attacker rebuilt images beyond chance."
    if leaks:
        return f"The shared gradients leak: in {leaks} of {total} settings the attacker rebuilt images beyond chance."
    return (
        f"In none of {total} settings did this attack rebuild images beyond chance. "
        "That is no proof of privacy: a stronger attack may succeed."
    )


def explain(summary: Summary, control: Summary | None) -> str:
    """Put one finding into a sentence; `control` is the same phase and attack without any defence."""
    if summary.advantage is None:
        return "The attack failed on every image, which says nothing about privacy."
    fed, aligned = (summary.figures[f"advantage_{target}"].mean for target in ("transformed", "aligned"))
    size = f"on average {fed:+.1f} dB over chance for the picture that was fed, {aligned:+.1f} dB for the original"
    tail = f" {summary.failed} of {summary.images} attacks failed and are not counted." if summary.failed else ""
    if summary.finding == "leak":
        return f"Images leak: {size}.{tail}"
    if summary.finding == "leak on some images":
        return f"Some images leak, image {summary.worst} by {summary.worst_advantage:+.1f} dB; {size}.{tail}"
    if summary.finding == "undecided":
        return f"Too few images to tell: {size}, and the interval reaches beyond {MARGIN:g} dB.{tail}"
    if control is None or control.finding != "leak":
        return f"No leak found ({size}), but this attack has not shown that it works here without a defence either."
    return f"This attack found no leak ({size}). A stronger attack may."
