"""What is known of every candidate at the end, and its status."""

import math

import pytest
import torch

from gradveil.rng import generator
from gradveil.search import ScoredCandidate, SearchSettings
from gradveil.search.outcome import make_outcome
from tests.search.tables import ScoreTable, make_world, number_candidates


def test_every_candidate_has_a_status() -> None:
    settings = SearchSettings(candidates=6, images=40, keep=1, training=None, weights="made up")
    table = ScoreTable(settings, make_world(generator(0), 6), torch.tensor([0.9, 0.8, 0.1, 0.9, 0.9, 0.9]))
    table.accuracy_scores(["0", "1", "2"])
    rough = {2: (0.3,), 3: (0.5, 0.7), 4: (math.nan,)}
    outcome = make_outcome(table, number_candidates(6), 0.5, rough, {0: (0.2,), 1: (0.1,)}, [1, 0])
    assert [(one.key, one.status) for one in outcome.candidates] == [
        ("1", "kept"),
        ("0", "beaten"),
        ("2", "unfit"),
        ("3", "rejected"),
        ("4", "failed"),
        ("5", "rejected"),
    ]
    assert [one.key for one in outcome.kept] == ["1"]
    assert outcome.accuracy_scores == pytest.approx([0.8, 0.9, 0.1])
    assert outcome.candidates[3].mean == 0.6
    assert math.isnan(outcome.candidates[5].mean)


def test_a_record_has_what_others_read() -> None:
    record = ScoredCandidate("3-1-7", "3-1-7", ("3-1-7",), (0.25, 0.25), True, -1.5, "kept").to_record()
    assert (record["policy"], record["privacy"], record["accuracy"], record["images"]) == ("3-1-7", 0.25, -1.5, 2)
