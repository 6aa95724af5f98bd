"""What a strategy comes back with: every candidate with its scores, the kept ones first."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gradveil.metrics import mean_interval
from gradveil.search.candidates import Candidate
from gradveil.search.score_journal import ScoreSource
from gradveil.transforms import parse_policy

CandidateStatus = Literal["kept", "beaten", "rejected", "unfit", "failed"]
Rows = Mapping[int, tuple[float, ...]]


@dataclass(frozen=True)
class ScoredCandidate:
    """What is known of one candidate at the end.

    `privacy_scores` are those of the images that were scored; `exact` tells whether these are all images, by the rule
    that counts. Status: kept, beaten by others in an exact comparison, rejected on rougher scores, unfit because S_acc
    is below the threshold, failed because S_pri is not finite. Rejected ones may lack S_acc.
    """

    policy: str
    key: str
    drawn: tuple[str, ...]
    privacy_scores: tuple[float, ...]
    exact: bool
    accuracy_score: float | None
    status: CandidateStatus

    @property
    def mean(self) -> float:
        return math.fsum(self.privacy_scores) / len(self.privacy_scores) if self.privacy_scores else math.nan

    def to_record(self) -> dict[str, Any]:
        """Return the candidate as it stands in JSON."""
        interval = mean_interval(self.privacy_scores)
        return {
            "policy": self.policy,
            "readable": parse_policy(self.policy).readable,
            "privacy": interval.mean,
            "privacy_low": interval.low,
            "privacy_high": interval.high,
            "privacy_std": interval.std,
            "images": interval.count,
            "exact": self.exact,
            "accuracy": self.accuracy_score,
            "drawn_as": list(self.drawn),
        }


@dataclass(frozen=True)
class Outcome:
    """Every candidate, the kept ones first and ranked; `threshold` is the least S_acc that qualifies.

    `drawn` counts the policies that were drawn, some of which may be the same function.
    """

    candidates: tuple[ScoredCandidate, ...]
    threshold: float
    drawn: int = 0

    @property
    def kept(self) -> list[ScoredCandidate]:
        return [candidate for candidate in self.candidates if candidate.status == "kept"]

    @property
    def accuracy_scores(self) -> list[float]:
        """List S_acc of the candidates that have it."""
        scores = [candidate.accuracy_score for candidate in self.candidates]
        return [score for score in scores if score is not None]

    def count(self, status: CandidateStatus) -> int:
        return sum(candidate.status == status for candidate in self.candidates)


def make_outcome(
    scores: ScoreSource,
    candidates: Sequence[Candidate],
    threshold: float,
    rough: Rows,
    exact: Rows,
    ranked: Sequence[int],
) -> Outcome:
    """Put together what is known; `ranked` holds the places of those that qualify and are exact, the best first."""
    keep, ranks = scores.settings.keep, {place: rank for rank, place in enumerate(ranked)}
    scored = []
    for place in [*ranked, *(place for place in range(len(candidates)) if place not in ranks)]:
        candidate = candidates[place]
        values = exact.get(place, rough.get(place, ()))
        accuracy_score = scores.known_accuracy.get(candidate.key)
        status: CandidateStatus = "rejected"
        if place in ranks:
            status = "kept" if ranks[place] < keep else "beaten"
        elif not all(map(math.isfinite, values)):
            status = "failed"
        elif accuracy_score is not None and accuracy_score < threshold:
            status = "unfit"
        scored.append(
            ScoredCandidate(
                candidate.policy, candidate.key, candidate.drawn, values, place in exact, accuracy_score, status
            )
        )
    return Outcome(tuple(scored), threshold)
