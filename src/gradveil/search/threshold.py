"""The accuracy threshold T_acc: a score, or a quantile of the candidates' scores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from gradveil.errors import SettingsError

FORMS = "give a score such as -1.5, a quantile such as q0.25 or 25%, or none"
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Threshold:
    """Either the least score that qualifies, or the share of candidates that does not.

    >>> Threshold.parse("-1.5"), Threshold.parse("25%")
    (Threshold(value=-1.5, is_quantile=False), Threshold(value=0.25, is_quantile=True))
    """

    value: float
    is_quantile: bool

    @classmethod
    def parse(cls, text: str) -> "Threshold":
        """Read `-1.5`, `q0.25`, `25%` or `none`."""
        if text == "none":
            return cls(-math.inf, False)
        is_quantile = text.startswith("q") or text.endswith("%")
        try:
            value = float(text.removeprefix("q").removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError as error:
            raise SettingsError(f"accuracy threshold '{text}': {FORMS}") from error
        if not math.isfinite(value) or (is_quantile and not 0 <= value < 1):
            raise SettingsError(f"accuracy threshold '{text}' is out of range: {FORMS}")
        return cls(value, is_quantile)

    def over(self, scores: Sequence[float]) -> float:
        """Return the least score that qualifies, given the scores of some candidates.

        Of these at least the share `1 - value` qualifies: the quantile is one of the scores, never between two.
        """
        if not self.is_quantile:
            return self.value
        return sorted(scores)[math.floor(self.value * len(scores))]


def is_out_of_reach(passed: int, tried: int, wanted: int, most: int) -> bool:
    """Tell whether `most` candidates will hardly hold `wanted` that pass, with 95% confidence, or are used up."""
    if passed >= wanted:
        return False
    highest = float(stats.beta.ppf(CONFIDENCE, passed + 1, tried - passed)) if passed < tried else 1.0
    return tried >= most or wanted > highest * most


def describe_scores(scores: Sequence[float]) -> str:
    """Put the distribution of S_acc into a line."""
    if not scores:
        return "none was scored"
    ordered = sorted(scores)
    parts = [
        f"{name} {ordered[round(share * (len(ordered) - 1))]:.3f}"
        for name, share in (("lowest", 0.0), ("25%", 0.25), ("median", 0.5), ("75%", 0.75), ("highest", 1.0))
    ]
    return ", ".join(parts)
