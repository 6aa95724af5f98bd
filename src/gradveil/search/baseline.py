"""What no policy at all scores: every kept policy is held against it, image by image."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.metrics import Interval, mean_interval
from gradveil.search.outcome import Outcome, ScoredCandidate
from gradveil.search.score_journal import ScoreSource

NONE = "none"
ERROR = 0.05
"""How often, at most, a search calls any policy better than none that is not."""


@dataclass(frozen=True)
class Baseline:
    """The scores of `none`, on the images and by the rule that the kept policies have; `compared` policies were tried.

    The best of many candidates look good on the images that chose them. So the interval of a difference is wide enough
    for all of them at once (Bonferroni).
    """

    privacy_scores: tuple[float, ...]
    accuracy_score: float
    compared: int

    def difference(self, candidate: ScoredCandidate) -> Interval:
        """Return the mean of policy − none over the images."""
        pairs = zip(candidate.privacy_scores, self.privacy_scores, strict=True)
        return mean_interval([own - none for own, none in pairs], 1 - ERROR / self.compared)

    def describe(self, candidate: ScoredCandidate) -> dict[str, Any]:
        """Return what a candidate's record says of the difference; None where there are too few images to tell."""
        found = self.difference(candidate)
        better = None if found.high is None else found.high < 0
        return {"against_none": found.mean, "against_none_high": found.high, "better_than_none": better}

    def to_record(self) -> dict[str, Any]:
        """Return the row of `none` as it stands in JSON."""
        interval = mean_interval(self.privacy_scores)
        return {
            "policy": NONE,
            "privacy": interval.mean,
            "privacy_low": interval.low,
            "privacy_high": interval.high,
            "privacy_std": interval.std,
            "images": interval.count,
            "accuracy": self.accuracy_score if math.isfinite(self.accuracy_score) else None,
        }


def score_none(scores: ScoreSource, outcome: Outcome) -> Baseline:
    """Score `none` on all images by the rule that counts."""
    row = scores.privacy_scores([NONE], range(scores.images), scores.settings.rule, "none")[0]
    (accuracy,) = scores.accuracy_scores([NONE], "none")
    return Baseline(tuple(row.tolist()), accuracy, max(1, len(outcome.candidates)))


def find_indistinct(entries: Sequence[dict[str, Any]]) -> list[str]:
    """List the policies of a record that are not shown to be better than none."""
    return [entry["policy"] for entry in entries if not entry["better_than_none"]]
