"""From rows to one line per arm, phase and attack."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gradveil.audit.rule import Kind, Outcome
from gradveil.audit.scoring import DECIMALS, Cell, Row
from gradveil.metrics import Interval, Null, bound_share, mean_interval, rate_interval

FIGURES = (
    *("psnr_transformed", "psnr_original", "floor_transformed", "floor_original"),
    *("aligned_transformed", "aligned_original", "aligned_floor_transformed", "aligned_floor_original"),
    *("advantage_transformed", "advantage_original", "ssim_transformed", "ssim_original"),
)


@dataclass(frozen=True)
class Share:
    """How many of the images the attack reached beyond chance, with bounds that hold however the audit was stopped."""

    reached: int
    images: int
    low: float
    high: float


@dataclass(frozen=True)
class NullBand:
    """The wrong-gradient control: 5%, 50% and 95% of its scores in dB, and their number."""

    count: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Identification:
    """How often the true image fits best of `candidates` images of its class; chance is one in so many."""

    found: int
    images: int
    candidates: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        return self.found / self.images


@dataclass(frozen=True)
class Summary:
    """What one attack achieved under one arm in one phase.

    `figures` has the mean, median and interval of each figure. `identification` is by the better of T(x) and x,
    `identification_original` by x alone. `threshold` is the median of the images' limits, at least ε. `hits` are the
    images that stay after Holm's correction. `worst` is the image that leaked most. `decided_after` is the number of
    images after which the sequential test was certain; `converged` the share of images whose rebuilt picture explains
    the release as well as the true one. `accuracy_cost` is against the arm without a defence.
    """

    arm: str
    phase: str
    attack: str
    kind: Kind
    images: int
    failed: int
    figures: dict[str, Interval] = field(default_factory=dict)
    share: Share | None = None
    threshold: float | None = None
    null: NullBand | None = None
    identification: Identification | None = None
    identification_original: Identification | None = None
    hits: tuple[int, ...] = ()
    worst: int | None = None
    worst_advantage: float | None = None
    decided_after: int | None = None
    converged: float | None = None
    label_accuracy: float | None = None
    seconds: float = 0.0
    accuracy: float | None = None
    accuracy_cost: float | None = None
    outcome: Outcome = "untrusted"
    reason: str = ""
    definition: str = "undecided"

    @property
    def advantage(self) -> Interval | None:
        """The larger of the two mean advantages, at T(x) and at x."""
        figures = [self.figures[name] for name in ("advantage_transformed", "advantage_original") if self.figures]
        return max(figures, key=lambda figure: figure.mean) if figures else None

    def to_record(self) -> dict[str, Any]:
        """Return the summary as it stands in JSON."""
        record: dict[str, Any] = rounded(asdict(self))
        return {**record, "hits": list(self.hits)}


def rounded(value: Any) -> Any:
    """Round every float in a record."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    return round(value, DECIMALS) if isinstance(value, float) else value


def summarise(cell: Cell, kind: Kind, epsilon: float) -> Summary:
    """Put the figures of a cell together; what they are called is for the verdict to say."""
    sound = [row for row in cell.rows if row.status == "ok"]
    plain = Summary(
        cell.arm,
        cell.phase,
        cell.attack,
        kind,
        len(cell.rows),
        len(cell.rows) - len(sound),
        seconds=sum(row.seconds for row in cell.rows),
    )
    if not sound:
        return plain
    worst = max(sound, key=lambda row: row.advantage or 0.0)
    controlled = [row for row in sound if row.reached is not None]
    return Summary(
        **{name: getattr(plain, name) for name in ("arm", "phase", "attack", "kind", "images", "failed", "seconds")},
        figures={name: mean_interval([getattr(row, name) for row in sound]) for name in FIGURES},
        share=share_of(controlled),
        threshold=max(epsilon, median([row.limit for row in controlled if row.limit is not None], epsilon)),
        null=band_of(cell.null),
        identification=identification_of(controlled, "identified"),
        identification_original=identification_of(controlled, "identified_original"),
        hits=tuple(row.image for row in sound if row.hit and row.confirmed is not False),
        worst=worst.image,
        worst_advantage=worst.advantage,
        converged=converged_of(sound),
        label_accuracy=sum(row.label_found is True for row in sound) / len(sound),
    )


def share_of(rows: Sequence[Row]) -> Share | None:
    if not rows:
        return None
    reached = sum(row.reached is True for row in rows)
    return Share(reached, len(rows), *bound_share(reached, len(rows)))


def band_of(scores: Sequence[float]) -> NullBand | None:
    if not scores:
        return None
    null = Null.of(scores)
    return NullBand(len(null), *(null.quantile(share) for share in (0.05, 0.5, 0.95)))


def identification_of(rows: Sequence[Row], name: str) -> Identification | None:
    if not rows:
        return None
    found = sum(getattr(row, name) is True for row in rows)
    return Identification(found, len(rows), min(row.crowd or 1 for row in rows), *rate_interval(found, len(rows)))


SLACK = 0.05
"""A rebuilt picture explains a release as well as the true one if its cosine distance is no larger than by this."""


def converged_of(rows: Sequence[Row]) -> float | None:
    """Return the share of images whose rebuilt picture explains the release as well as the true one."""
    pairs = [(row.match_rebuilt, row.match_truth) for row in rows]
    known = [rebuilt <= truth + SLACK for rebuilt, truth in pairs if rebuilt is not None and truth is not None]
    return sum(known) / len(known) if known else None


def median(values: Sequence[float], otherwise: float) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else otherwise


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
