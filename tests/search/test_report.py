"""The figures and the policies that a search writes."""

import json
from pathlib import Path

from gradveil.results import seal
from gradveil.search import SearchResult
from gradveil.search.report import make_policies
from gradveil.transforms import from_record


def test_the_figures_and_the_policies(whole: tuple[Path, SearchResult]) -> None:
    figures, kept = whole[1].record, whole[1].outcome.kept
    assert [entry["policy"] for entry in figures["policies"]] == [candidate.policy for candidate in kept]
    assert all(entry["images"] == 16 and entry["exact"] for entry in figures["policies"])
    assert figures["counts"]["drawn"] == 20
    statuses = ("kept", "beaten", "rejected", "unfit", "failed")
    assert sum(figures["counts"][status] for status in statuses) == figures["counts"]["different"]
    best = min(figures["front"], key=lambda entry: entry["privacy"])
    assert best["privacy"] <= figures["policies"][0]["privacy"]
    policies = json.loads((whole[0] / "policies.json").read_text())
    assert policies == json.loads(json.dumps(seal(make_policies(figures))))
    assert str(from_record(policies["hybrid"])) == figures["hybrid"]
    assert [str(from_record(entry)) for entry in policies["policies"]] == [candidate.policy for candidate in kept]
