"""Searches that several tests look at."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.data import DataSet
from gradveil.search import SearchResult
from gradveil.training import Checkpoint
from tests.search.runs import SMALL, Runner, drawn_checkpoint, few_images


@pytest.fixture(scope="session")
def sample() -> DataSet:
    return few_images()


@pytest.fixture(scope="session")
def checkpoint(sample: DataSet) -> Checkpoint:
    return drawn_checkpoint(sample)


@pytest.fixture(scope="session")
def run(sample: DataSet, checkpoint: Checkpoint) -> Runner:
    return Runner(sample, checkpoint)


@pytest.fixture(scope="session")
def whole(run: Runner, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchResult]:
    """Race once without a stop."""
    folder = tmp_path_factory.mktemp("whole") / "search"
    return folder, run(folder, SMALL)


@pytest.fixture(scope="session")
def everything(run: Runner, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchResult]:
    """Score everyone in full."""
    folder = tmp_path_factory.mktemp("everything") / "search"
    return folder, run(folder, replace(SMALL, strategy="random"))
