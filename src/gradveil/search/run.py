"""The whole search: the model, the images, the strategy, and drawing on while too few candidates qualify."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from gradveil.data import DataSet
from gradveil.defences import CropFlip
from gradveil.errors import SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.scores import choose_accuracy_images, choose_privacy_images
from gradveil.search.candidates import draw_candidates
from gradveil.search.evaluate import Material
from gradveil.search.evolve import evolve
from gradveil.search.outcome import Outcome
from gradveil.search.racing import Race
from gradveil.search.random import search_randomly, take_threshold
from gradveil.search.settings import SearchSettings
from gradveil.search.study import OnProgress, Study
from gradveil.search.threshold import describe_scores, is_out_of_reach
from gradveil.training import Checkpoint, load_checkpoint, train
from gradveil.training.state import STATE
from gradveil.types import Batch

BATCH = 100
PUBLIC = 1000
"""Training images that stand for what anyone can have, for a score that is held against chance."""
MOST = 3
"""How many times `candidates` are drawn at most while too few qualify."""


def search_by_racing(study: Study, count: int) -> Outcome:
    """Race the first `count` candidates."""
    settings = study.settings
    candidates = draw_candidates(settings.seed, count, settings.length)
    return Race(study, candidates, take_threshold(study)).run()


STRATEGIES: dict[str, Callable[[Study, int], Outcome]] = {
    "racing": search_by_racing,
    "random": search_randomly,
    "evolve": evolve,
}


def search(study: Study) -> Outcome:
    """Run the strategy; draw on while fewer than `keep` qualify, until that proves hopeless."""
    settings = study.settings
    count, most = settings.candidates, MOST * settings.candidates
    while True:
        study.drawn = count
        outcome = STRATEGIES[settings.strategy](study, count)
        if len(outcome.kept) == settings.keep:
            study.note("done", drawn=count)
            return outcome
        if outcome.count("failed") == len(outcome.trials):
            raise SettingsError(
                f"S_pri is not finite for any of {len(outcome.trials)} candidates: train the model again"
            )
        scores = outcome.accuracies
        passed = sum(score >= outcome.least for score in scores)
        study.note("too few", drawn=count, qualified=passed)
        if is_out_of_reach(passed, len(scores), settings.keep, most):
            raise SettingsError(
                f"the accuracy threshold {settings.accuracy_threshold} is out of reach: {passed} of {len(scores)} "
                f"different candidates have S_acc ≥ {outcome.least:.4g}, and {settings.keep} are wanted; S_acc: "
                f"{describe_scores(scores)}. Lower it with --accuracy-threshold, or keep fewer with --keep"
            )
        count = min(most, count + max(settings.keep, settings.candidates // 2))


@dataclass(frozen=True, eq=False)
class Prepared:
    """The two models; `digest` identifies the weights that S_pri is taken on."""

    spec: ModelSpec
    model: nn.Module
    fresh: nn.Module
    digest: str
    made: dict[str, Any]


def prepare(loaded: Checkpoint, seed: int) -> Prepared:
    """Take the model of a checkpoint for S_pri, and a fresh one of the same kind for S_acc."""
    digest = hashlib.sha256(save(loaded.weights)).hexdigest()
    fresh = loaded.spec.build(generator(seed, "model"))
    return Prepared(loaded.spec, loaded.build(), fresh, digest, dict(loaded.made))


def check_data(loaded: Checkpoint, path: Path, data: DataSet) -> None:
    """Refuse a checkpoint for other images."""
    if loaded.spec.shape != data.shape or loaded.spec.classes != data.classes:
        raise SettingsError(
            f"{path} is for images of {loaded.spec.shape} in {loaded.spec.classes} classes, the data has {data.shape} "
            f"in {data.classes}: choose the data it was trained on"
        )


def train_model(settings: SearchSettings, data: DataSet, folder: Path, progress: OnProgress) -> Checkpoint:
    """Train the model that S_pri is taken on; one that was cut short goes on, one that is there is taken."""
    assert settings.training is not None
    final = folder / "final.safetensors"
    if not (final.exists() and final.with_suffix(".json").exists()):
        spec = ModelSpec(settings.model, data.shape, data.classes, data.mean, data.std)
        train(
            spec.build(generator(settings.seed, "model")),
            data,
            settings.training,
            defences=[CropFlip()],
            seed=settings.seed,
            phases=["final"],
            device=settings.device,
            folder=folder,
            spec=spec,
            resume=(folder / STATE).exists(),
            progress=lambda now: progress("training the model", now.step, now.steps),
        )
    return load_checkpoint(final, settings.model if ":" in settings.model else None)


def make_material(settings: SearchSettings, data: DataSet, prepared: Prepared) -> Material:
    """Choose the images that are scored: those that `gradveil score` takes, too."""
    total = len(data.test)
    size = min(BATCH, total - total // 5)
    scored = choose_privacy_images(total, settings.images)
    batches = choose_accuracy_images(total, size, settings.accuracy_batches)
    return Material(
        prepared.model,
        prepared.fresh,
        data.test.images[scored],
        data.test.labels[scored],
        data.test.images[batches],
        data.test.labels[batches],
        len(batches) // size,
        Batch(data.train.images[:PUBLIC], data.train.labels[:PUBLIC]),
        settings.score,
        settings.seed,
        settings.device,
    )


def unscored(settings: SearchSettings, data: DataSet) -> DataSet:
    """Leave the scored images out of the test split, for whoever attacks or tests what was found."""
    total = len(data.test)
    size = min(BATCH, total - total // 5)
    used = {*choose_privacy_images(total, settings.images), *choose_accuracy_images(total, size, settings.accuracy_batches)}
    left = torch.tensor([place for place in range(total) if place not in used])
    return replace(data, test=data.test.take(left))
