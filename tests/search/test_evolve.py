"""Evolution: children stay within the space, and the search meets more of the best."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.rng import generator
from gradveil.search import SearchResult
from gradveil.search.evolve import breed, cross, mutate
from gradveil.transforms import Policy
from tests.search.runs import SMALL, Runner, read_lines

EVOLVE = replace(SMALL, strategy="evolve", candidates=30, keep=3)


def test_evolution_meets_more_of_the_best(run: Runner, everything: tuple[Path, SearchResult], tmp_path: Path) -> None:
    outcome = run(tmp_path / "one", EVOLVE).outcome
    assert len(outcome.candidates) == 30
    assert len(outcome.kept) == 3
    assert sum(one.mean for one in outcome.kept) < sum(one.mean for one in everything[1].outcome.kept[:3])
    first = read_lines(tmp_path / "one")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "two", EVOLVE, stop=7)
    assert run(tmp_path / "two", EVOLVE, resume=True).outcome == outcome
    assert len(read_lines(tmp_path / "two")) == len(first)


def test_a_mutation_changes_one_step_at_most() -> None:
    parent = Policy((3, 1, 7))
    lengths = set()
    for number in range(200):
        child = mutate(parent, 3, generator(0, "mutation", number))
        lengths.add(len(child.indices))
        kept = sum(step in child.indices for step in parent.indices)
        assert kept >= 2
    assert lengths == {2, 3}
    assert {len(mutate(Policy(()), 3, generator(0, number)).indices) for number in range(20)} == {1}


def test_a_child_of_two_begins_as_one_and_ends_as_the_other() -> None:
    first, second = Policy((1, 2, 3)), Policy((11, 12, 13))
    for number in range(50):
        steps = cross(first, second, 3, generator(0, "crossing", number)).indices
        assert len(steps) <= 3
        cut = sum(step < 10 for step in steps)
        assert steps[:cut] == first.indices[:cut]
        assert all(step > 10 for step in steps[cut:])


def test_children_are_named_by_their_number_and_drawn_without_parents() -> None:
    parents = [Policy((1, 2, 3)), Policy((4,))]
    assert breed(parents, 8, 1, 0, 3)[:4] == breed(parents, 4, 1, 0, 3) != breed(parents, 4, 2, 0, 3)
    assert len({str(child) for child in breed([], 20, 1, 0, 3)}) > 15
