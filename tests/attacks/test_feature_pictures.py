"""Pictures from features."""

from dataclasses import replace

import pytest
import torch

from gradveil.attacks.feature_pictures import FeatureMap, FeatureMatching, PictureRegression, rehearse
from gradveil.errors import SettingsError
from gradveil.metrics import psnr
from gradveil.rng import generator
from tests.attacks.scenes import make_task, sample_task, take


def test_features_are_what_enters_the_layer_in_whole_batches() -> None:
    task = sample_task()
    pixels = take(range(5)).pixels()
    seen = FeatureMap(task.model, "head", None)
    torch.testing.assert_close(seen(pixels), task.model.body(task.model.normalise(pixels)))  # type: ignore[operator]
    torch.testing.assert_close(seen.all(pixels), seen(pixels).detach())
    assert len(FeatureMap(task.model, "head", 2).all(pixels)) == 4


def test_a_regression_is_nearer_than_the_mean_picture() -> None:
    task, truth = sample_task(), take(range(12)).pixels()
    assert task.public is not None
    seen = FeatureMap(task.model, "head", None)
    regression = PictureRegression.of(seen, task.public)
    pictures = regression(seen.all(truth))
    mean = task.public.pixels().mean(0).expand_as(truth)
    assert float((psnr(pictures, truth) - psnr(mean, truth)).min()) > 0
    assert float((psnr(pictures, truth) - psnr(mean, truth)).mean()) > 3


def test_matching_features_finds_the_images() -> None:
    task, truth = sample_task(), take(range(4)).pixels()
    seen = FeatureMap(task.model.requires_grad_(False), "head", None)
    search = FeatureMatching().from_noise()
    pictures = search(task, seen, seen(truth), None, generator(0))
    assert float(psnr(pictures, truth).mean()) > 18
    assert 0 <= float(pictures.min()) <= float(pictures.max()) <= 1


def test_without_public_images_the_search_is_all_there_is() -> None:
    search = FeatureMatching(steps=2)
    task = replace(make_task(), public=None)
    maker = rehearse(task, FeatureMap(task.model, "head", None), (search,), generator(0))
    assert (maker.search, maker.regression) == (search.from_noise(), None)


def test_a_search_that_leads_away_is_not_used() -> None:
    task = sample_task()
    wild = FeatureMatching(steps=3, learning_rate=100.0)
    maker = rehearse(task, FeatureMap(task.model.requires_grad_(False), "head", None), (wild,), generator(0))
    assert maker.search is None
    assert maker.regression is not None


@pytest.mark.parametrize("change", [{"steps": 0}, {"learning_rate": 0.0}, {"pull": 0.05}, {"last_pull": 0.0}])
def test_nonsense_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        FeatureMatching(**change)  # type: ignore[arg-type]
