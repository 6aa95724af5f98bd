"""How well each score predicts what an attack gains: correlations over policies, from the journals."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from gradveil.experiments.markdown import write_table

PLAIN = "cross-entropy"
Values = NDArray[np.float64]
RESAMPLES = 2000
OUTCOMES = {"psnr_transformed": "PSNR", "advantage_transformed": "advantage", "floor_transformed": "chance floor"}
COLUMNS = (
    "model",
    "phase",
    "score",
    "n",
    "with",
    "Pearson",
    "Spearman",
    "chosen half",
    "other half",
    "seconds a policy",
)


@dataclass(frozen=True)
class Correlation:
    """A correlation over policies with its bootstrap interval (95%)."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


@dataclass(frozen=True)
class ScoreLine:
    """One score against one outcome, on one model in one phase.

    `chosen` and `held_out` are Spearman's over the policies of even and of odd place.
    """

    model: str
    phase: str
    score: str
    loss: str
    outcome: str
    policies: int
    pearson: Correlation
    spearman: Correlation
    chosen: float
    held_out: Correlation
    seconds: float

    def texts(self) -> list[str]:
        return [
            self.model,
            self.phase,
            self.score if self.loss == PLAIN else f"{self.score}, {self.loss}",
            f"{self.policies}",
            OUTCOMES[self.outcome],
            str(self.pearson),
            str(self.spearman),
            f"{self.chosen:+.2f}",
            str(self.held_out),
            f"{self.seconds:.2f}",
        ]


def correlate(scores: Values, outcomes: Values, rank: bool, seed: int = 0) -> Correlation:
    """Take Pearson's correlation, of ranks for Spearman's; policies are what is resampled."""
    count = len(scores)
    draws = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    rows = np.concatenate([np.arange(count)[None], draws])
    values = pearson(*((stats.rankdata(each[rows], axis=1) if rank else each[rows]) for each in (scores, outcomes)))
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return Correlation(float(values[0]), float(low), float(high))


def pearson(first: Values, second: Values) -> Values:
    """Correlate row by row; a row without spread has a correlation of 0."""
    first, second = (each - each.mean(1, keepdims=True) for each in (first, second))
    lengths = np.sqrt((first**2).sum(1) * (second**2).sum(1))
    products: Values = (first * second).sum(1)
    quotients: Values = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 1e-12)
    return quotients


def make_lines(
    policies: Sequence[str], scored: Sequence[Mapping[str, Any]], attacked: Sequence[Mapping[str, Any]]
) -> list[ScoreLine]:
    """Join scores and attacks by model, phase and policy; policies that lack one of the two are left out."""
    outcomes = mean_outcomes(attacked)
    means: dict[tuple[str, str, str, str], dict[str, tuple[float, float]]] = defaultdict(dict)
    for entry in scored:
        cell = entry["cell"]
        key = cell["model"], cell["phase"], cell["score"], cell.get("loss", PLAIN)
        means[key][cell["policy"]] = float(np.mean(entry["values"])), entry["seconds"]
    lines = []
    for key, scores in means.items():
        model, phase, _, _ = key
        rows = [
            (place, *scores[policy], outcomes[model, phase, policy])
            for place, policy in enumerate(policies)
            if policy in scores and (model, phase, policy) in outcomes
        ]
        lines += [make_line(key, name, rows) for name in OUTCOMES if len(rows) >= 8]
    return lines


def make_line(
    key: tuple[str, str, str, str], outcome: str, rows: Sequence[tuple[int, float, float, Mapping[str, float]]]
) -> ScoreLine:
    values, truth = np.array([row[1] for row in rows]), np.array([row[3][outcome] for row in rows])
    odd = np.array([row[0] % 2 == 1 for row in rows])
    return ScoreLine(
        *key,
        outcome,
        len(rows),
        correlate(values, truth, rank=False),
        correlate(values, truth, rank=True),
        correlate(values[~odd], truth[~odd], rank=True).value,
        correlate(values[odd], truth[odd], rank=True),
        float(np.mean([row[2] for row in rows])),
    )


def mean_outcomes(attacked: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], dict[str, float]]:
    """Average the outcomes of each policy over its images; a policy with a failed attack is left out."""
    outcomes = {}
    for entry in attacked:
        cell = entry["cell"]
        if cell["part"] != "scores" or any(row["status"] != "ok" for row in entry["rows"]):
            continue
        policy = cell["arm"].removeprefix("policy:").removesuffix(",no-base")
        means = {name: float(np.mean([row[name] for row in entry["rows"]])) for name in OUTCOMES}
        outcomes[cell["model"], cell["phase"], policy] = means
    return outcomes


def render_markdown(lines: Sequence[ScoreLine]) -> str:
    """Write the table."""
    text = [
        "# Scores against attacks",
        "",
        "Correlation over random policies between a score (mean over 16 images) and what the attack `fast` reached on "
        "8 other images: PSNR of T(x), advantage over chance, and the chance floor itself. In brackets 95% bootstrap "
        "intervals over policies. The last two columns of correlations are Spearman's on the policies of even place, "
        "on which a score may be chosen, and of odd place, on which it is judged.",
        "",
        *write_table(COLUMNS, [line.texts() for line in lines]),
        "",
    ]
    return "\n".join(text)
