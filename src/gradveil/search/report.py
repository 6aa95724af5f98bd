"""What a search writes: the record, and the policies for whoever trains or audits."""

import math
from collections.abc import Sequence
from typing import Any

from gradveil.search.outcome import Outcome
from gradveil.search.select import find_front, make_hybrid
from gradveil.search.study import Study
from gradveil.search.validate import Validated
from gradveil.transforms import parse_policy

SCHEMA = 1


def make_figures(study: Study, outcome: Outcome, validated: Sequence[Validated]) -> dict[str, Any]:
    """Give what `search.json` holds besides settings and environment.

    The front is that of all policies with S_acc and S_pri of all images; `exact` tells by which rule.
    """
    hybrid = make_hybrid([trial.policy for trial in outcome.kept])
    whole = [trial for trial in outcome.trials if len(trial.privacy) == study.images]
    return {
        "policies": [trial.to_record() for trial in outcome.kept],
        "hybrid": str(hybrid),
        "front": [trial.to_record() for trial in find_front(whole)],
        "accuracy_least": outcome.least if math.isfinite(outcome.least) else None,
        "counts": {
            "drawn": study.drawn,
            "different": len(outcome.trials),
            **{status: outcome.count(status) for status in ("kept", "beaten", "rejected", "unfit", "failed")},
            "with_accuracy": len(outcome.accuracies),
        },
        "rounds": [line for line in study.records.events if line["event"] == "round"],
        "validation": [one.to_record() for one in validated],
        "processor_seconds": round(study.records.seconds, 3),
    }


def make_policies(figures: dict[str, Any]) -> dict[str, Any]:
    """Give what `policies.json` holds."""
    return {
        "schema": SCHEMA,
        "hybrid": parse_policy(figures["hybrid"]).to_record(),
        "policies": [parse_policy(entry["policy"]).to_record() for entry in figures["policies"]],
    }
