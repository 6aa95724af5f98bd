"""Small real searches."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gradveil import data
from gradveil.data import DataSet
from gradveil.journal import Journal
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.search import SearchResult, SearchSettings, run_search
from gradveil.training import Checkpoint

SMALL = SearchSettings(
    model="lenet", candidates=20, keep=4, images=16, accuracy_threshold="-18", quadrature="trapezoid-5"
)


def few_images() -> DataSet:
    """Take 60 test images of the sample."""
    loaded = data.load("fashion-mnist-sample")
    return replace(loaded, test=loaded.test.take(torch.arange(60)))


def drawn_checkpoint(sample: DataSet, made: dict[str, Any] | None = None) -> Checkpoint:
    """Take a model as it is drawn."""
    spec = ModelSpec("lenet", sample.shape, sample.classes, sample.mean, sample.std)
    return Checkpoint(spec.build(generator(1, "model")).state_dict(), spec, made or {})


class Runner:
    """Run searches on one checkpoint, each in a folder of its own."""

    def __init__(self, sample: DataSet, checkpoint: Checkpoint) -> None:
        self.sample, self.checkpoint = sample, checkpoint

    def __call__(
        self, folder: Path, settings: SearchSettings, *, resume: bool = False, workers: int = 1, stop: int | None = None
    ) -> SearchResult:
        """Search; with `stop`, interrupt it at that report of progress."""
        reports = 0

        def progress(what: str, done: int, total: int) -> None:  # noqa: ARG001
            nonlocal reports
            reports += 1
            if reports == stop:
                raise KeyboardInterrupt

        return run_search(
            settings,
            self.sample,
            folder,
            workers=workers,
            resume=resume,
            checkpoint=self.checkpoint,
            progress=progress,
        )


def read_lines(folder: Path) -> list[dict[str, Any]]:
    return Journal(folder / "journal.jsonl").read()
