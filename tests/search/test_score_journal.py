"""Scores come from the journal or from jobs, in parts that follow the blocks of the score."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.data import DataSet
from gradveil.journal import Journal
from gradveil.scores import PrivacyScore, choose_privacy_images
from gradveil.search import SearchResult
from gradveil.search.jobs import make_inputs
from gradveil.search.records import Records, sort_lines
from gradveil.search.score_journal import ScoreJournal, split
from gradveil.search.scoring_model import prepare_model
from gradveil.study import silent
from gradveil.training import Checkpoint
from gradveil.transforms import parse_policy
from gradveil.workers import Workers
from tests.search.runs import SMALL

SETTINGS = replace(SMALL, training=None, weights="drawn")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


def open_scores(journal: Journal, sample: DataSet, checkpoint: Checkpoint) -> ScoreJournal:
    inputs = make_inputs(SETTINGS, sample, prepare_model(checkpoint, 0))
    return ScoreJournal(SETTINGS, journal, sort_lines(journal.read()), Workers(1), inputs, silent)


def test_nothing_is_computed_twice(journal: Journal, sample: DataSet, checkpoint: Checkpoint) -> None:
    scores = open_scores(journal, sample, checkpoint)
    first = scores.privacy_scores(["3-1-7", "18", "3-1-7"], [3, 0], "lobatto-3")
    assert first.shape == (3, 2)
    assert first[0].equal(first[2])
    (accuracy_score,) = scores.accuracy_scores(["18"])
    written = journal.read()
    again = open_scores(journal, sample, checkpoint)
    assert again.known_accuracy == {}
    assert again.privacy_scores(["18"], [0, 3], "lobatto-3")[0].equal(first[1].flip(0))
    assert again.accuracy_scores(["18"]) == [accuracy_score]
    assert again.known_accuracy == {"18": accuracy_score}
    assert journal.read() == written
    again.privacy_scores(["18"], [0, 1], "lobatto-3")
    assert len(journal.read()) == len(written) + 1


def test_scores_are_those_of_the_score_itself(
    everything: tuple[Path, SearchResult], sample: DataSet, checkpoint: Checkpoint
) -> None:
    places = choose_privacy_images(sample, 16, 0)
    test = sample.test
    score = PrivacyScore(checkpoint.build(), test.images[places], test.labels[places], quadrature="trapezoid-5", seed=0)
    best = everything[1].outcome.kept[0]
    assert score.score(parse_policy(best.policy)).tolist() == list(best.privacy_scores)


def test_a_note_is_written_once(journal: Journal, sample: DataSet, checkpoint: Checkpoint) -> None:
    for _ in range(2):
        scores = open_scores(journal, sample, checkpoint)
        scores.note("round", number=1, leaders=["18"])
        scores.note("round", number=1, leaders=["18"])
        scores.note("round", number=2, leaders=[])
    assert [line["number"] for line in journal.read()] == [1, 2]


def test_images_are_split_along_blocks(journal: Journal, sample: DataSet, checkpoint: Checkpoint) -> None:
    scores = open_scores(journal, sample, checkpoint)
    for part in scores.split_images(range(16), "trapezoid-21"):
        assert part[0] % scores.block == 0
        assert len(part) == scores.block
    assert [list(part) for part in split([1, 2, 3], 2)] == [[1, 2], [3]]
    assert [list(part) for part in split([1, 2], 0)] == [[1], [2]]
    assert isinstance(scores.records, Records)
