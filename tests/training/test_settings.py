"""Settings and recipes: what is allowed, the JSON round trip, the schedules."""

import json
import math
from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from gradveil.data import load
from gradveil.defences import CropFlip
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.models import build
from gradveil.rng import generator
from gradveil.training import FAST, PAPER, RECIPES, TrainingSettings
from gradveil.training.loop import TrainingRun


def test_the_paper_recipe_is_the_published_one() -> None:
    assert (PAPER.learning_rate, PAPER.momentum, PAPER.weight_decay, PAPER.batch_size) == (0.1, 0.9, 5e-4, 128)
    assert PAPER.loss == "cross-entropy"
    assert [PAPER.rate(step, 800) for step in (15, 299, 300, 499, 500, 699, 700, 799)] == pytest.approx(
        [0.1, 0.1, 0.01, 0.01, 0.001, 0.001, 0.0001, 0.0001]
    )


def test_the_paper_recipe_rises_first() -> None:
    assert [PAPER.rate(step, 200) for step in (0, 1, 2, 3, 4)] == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1])


def test_the_fast_recipe_rises_and_falls() -> None:
    settings = replace(FAST, learning_rate=1.0, warm_up=0.25)
    rates = [settings.rate(step, 100) for step in range(100)]
    assert max(rates) == rates[24] == 1.0
    assert rates[0] == pytest.approx(0.04)
    assert rates[-1] == pytest.approx(1 / 75)
    assert rates[:25] == sorted(rates[:25])
    assert rates[25:] == sorted(rates[25:], reverse=True)


def test_without_warm_up_the_rate_only_falls() -> None:
    settings = replace(FAST, learning_rate=1.0, warm_up=0.0)
    assert [settings.rate(step, 4) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]


@pytest.mark.parametrize("settings", RECIPES.values(), ids=list(RECIPES))
def test_settings_go_through_json(settings: TrainingSettings) -> None:
    assert TrainingSettings.from_record(json.loads(json.dumps(settings.to_record()))) == settings


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'epochs'"):
        TrainingSettings.from_record({"epoch": 3})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("batch_size", -1),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("momentum", 1.0),
        ("weight_decay", -1e-9),
        ("warm_up", -0.1),
        ("fraction", 0.0),
        ("fraction", 1.1),
        ("test_every", 0),
        ("threads", 0),
        ("recipe", "slow"),
        ("schedule", "cosine"),
    ],
)
def test_values_out_of_range_are_refused(name: str, value: Any) -> None:
    assert name in {field.name for field in fields(TrainingSettings)}
    with pytest.raises(SettingsError, match=f"{name.replace('_', ' ')} is {value}: it must be"):
        replace(PAPER, **{name: value})


@pytest.mark.parametrize(
    ("images", "fraction", "steps"), [(5000, 1.0, 39), (5000, 0.1, 3), (100, 1.0, 1), (50_000, 0.1, 39)]
)
def test_steps_of_an_epoch(images: int, fraction: float, steps: int) -> None:
    assert replace(PAPER, fraction=fraction).steps_per_epoch(images) == steps


@pytest.mark.slow
def test_without_its_rise_the_papers_recipe_kills_the_convnet() -> None:
    """Why PAPER departs from the papers: at full rate from the first step every last unit dies, and stays dead."""
    sample = load("fashion-mnist-sample")

    def last_losses(warm_up: float) -> list[float]:
        model = build("convnet-8", sample.shape, sample.classes, sample.mean, sample.std, generator(2, "model"))
        run = TrainingRun(model, sample, replace(PAPER, warm_up=warm_up), (CropFlip(),), 2, torch.device("cpu"))
        losses = []
        for _ in range(30):
            before = run.state.loss
            run.take_step()
            losses.append(run.state.loss - before)
        return losses[-5:]

    assert last_losses(0.0) == pytest.approx([math.log(10)] * 5, abs=0.05)
    assert max(last_losses(PAPER.warm_up)) < 2
