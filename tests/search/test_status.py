"""How far a search is, from its journal."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.search import SearchResult, make_status, read_records
from tests.search.runs import SMALL, Runner


def test_the_status_tells_how_far_it_is(run: Runner, whole: tuple[Path, SearchResult], tmp_path: Path) -> None:
    done = make_status(read_records(whole[0]))
    assert done.finished
    assert [one.privacy for one in done.leaders] == [candidate.mean for candidate in whole[1].outcome.kept]
    assert all(one.exact for one in done.leaders)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "search", SMALL, stop=4)
    early = make_status(read_records(tmp_path / "search"))
    assert not early.finished
    assert "at work" in early.headline
    assert replace(early, at_work=False).headline.startswith("stopped, ")
    assert len(early.leaders) == 4
    assert not any(one.exact for one in early.leaders)
