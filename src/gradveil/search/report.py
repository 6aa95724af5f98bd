"""What a search writes: the record, and the policies for whoever trains or audits."""

import math
from collections.abc import Sequence
from typing import Any, get_args

from gradveil.search.baseline import Baseline
from gradveil.search.outcome import CandidateStatus, Outcome
from gradveil.search.score_journal import ScoreJournal
from gradveil.search.select import find_front, make_hybrid
from gradveil.search.validate import ValidatedPolicy
from gradveil.transforms import parse_policy

SCHEMA = 1


def make_figures(
    scores: ScoreJournal, outcome: Outcome, baseline: Baseline, validated: Sequence[ValidatedPolicy]
) -> dict[str, Any]:
    """Return what `search.json` holds besides settings and environment.

    The front is that of all policies with S_acc and S_pri of all images; `exact` tells by which rule.
    """
    hybrid = make_hybrid([candidate.policy for candidate in outcome.kept])
    whole = [candidate for candidate in outcome.candidates if len(candidate.privacy_scores) == scores.images]
    return {
        "policies": [{**candidate.to_record(), **baseline.describe(candidate)} for candidate in outcome.kept],
        "none": baseline.to_record(),
        "hybrid": str(hybrid),
        "front": [candidate.to_record() for candidate in find_front(whole)],
        "accuracy_least": outcome.threshold if math.isfinite(outcome.threshold) else None,
        "counts": {
            "drawn": outcome.drawn,
            "different": len(outcome.candidates),
            **{status: outcome.count(status) for status in get_args(CandidateStatus)},
            "with_accuracy": len(outcome.accuracy_scores),
        },
        "rounds": [line for line in scores.records.events if line["event"] == "round"],
        "validation": [one.to_record() for one in validated],
        "processor_seconds": round(scores.records.seconds, 3),
    }


def make_policies(figures: dict[str, Any]) -> dict[str, Any]:
    """Return what `policies.json` holds."""
    return {
        "schema": SCHEMA,
        "hybrid": parse_policy(figures["hybrid"]).to_record(),
        "policies": [parse_policy(entry["policy"]).to_record() for entry in figures["policies"]],
    }
