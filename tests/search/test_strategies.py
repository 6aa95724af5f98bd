"""The strategies on a real small model: they agree, draw on, and say when a threshold is out of reach."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil.errors import SettingsError
from gradveil.rng import generator
from gradveil.scores import SCORES, find_quadrature
from gradveil.search import SearchResult, SearchSettings, read_records
from gradveil.search.settings import Strategy
from gradveil.search.strategies import STRATEGIES, take_threshold
from tests.search.runs import SMALL, Runner, read_lines
from tests.search.tables import ScoreTable, make_world


def test_racing_keeps_what_scoring_everyone_keeps(
    whole: tuple[Path, SearchResult], everything: tuple[Path, SearchResult]
) -> None:
    raced, scored = whole[1].outcome, everything[1].outcome
    assert [one.policy for one in raced.kept] == [one.policy for one in scored.kept]
    assert [one.privacy_scores for one in raced.kept] == [one.privacy_scores for one in scored.kept]
    assert raced.count("rejected") > 5
    assert scored.count("rejected") == 0
    assert sum(one.exact for one in raced.candidates) < 0.75 * sum(one.exact for one in scored.candidates)


def test_a_threshold_out_of_reach_ends_with_the_distribution(run: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "search"
    settings = replace(SMALL, accuracy_threshold="-1.0001", candidates=6, keep=2)
    with pytest.raises(SettingsError, match=r"0 of \d+ different candidates.*median -.*--accuracy-threshold") as caught:
        run(folder, settings)
    assert "\n" not in str(caught.value)
    assert len(read_records(folder).accuracy_batches) >= 6


@pytest.mark.parametrize("strategy", ["racing", "random"])
def test_drawing_goes_on_while_too_few_qualify(run: Runner, tmp_path: Path, strategy: Strategy) -> None:
    settings = replace(SMALL, candidates=4, keep=4, accuracy_threshold="50%", accuracy_sample=4, strategy=strategy)
    outcome = run(tmp_path / "run", settings).outcome
    assert len(outcome.kept) == 4
    assert len(outcome.candidates) > 4
    assert outcome.drawn > 4
    events = [line for line in read_lines(tmp_path / "run") if line.get("event") == "too few"]
    assert events[0]["qualified"] == 2


@pytest.mark.parametrize("score", [name for name in SCORES if "attack" not in name])
def test_every_score_can_be_searched_by(run: Runner, tmp_path: Path, score: str) -> None:
    settings = replace(SMALL, score=score, candidates=3, keep=1, images=4, accuracy_threshold="none")
    outcome = run(tmp_path / "run", replace(settings, quadrature=None)).outcome
    everyone = run(tmp_path / "all", replace(settings, quadrature="lobatto-7", strategy="random")).outcome
    assert [one.mean for one in outcome.kept] == [min(one.mean for one in everyone.candidates)]


def test_a_fixed_threshold_costs_nothing_and_a_quantile_a_sample() -> None:
    table = ScoreTable(SearchSettings(accuracy_threshold="-1.5"), make_world(generator(0), 8), torch.zeros(8))
    assert take_threshold(table) == -1.5
    assert table.known_accuracy == {}
    assert set(STRATEGIES) == {"racing", "random", "evolve"}
    assert find_quadrature(table.settings.rule).gradients == 6
