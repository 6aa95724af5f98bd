"""Forecasts of what a picture scores."""

import math
from collections.abc import Sequence

import pytest
import torch

from gradveil.attacks.choices import MemberResult
from gradveil.attacks.forecasts import Criterion, Tried, fit, learn
from gradveil.rng import generator
from gradveil.types import Reconstruction, Status


def result(name: str, loss: float, value: float = 0.5, inverts: bool = False) -> MemberResult:
    status: Status = "ok" if math.isfinite(loss) else "failed"
    picture = torch.full((1, 1, 2, 2), value)
    return MemberResult(name, Reconstruction(picture, torch.zeros(1).long(), loss, status), loss, loss, inverts)


def rehearsal(plain: Sequence[float], near: Sequence[float]) -> list[list[Tried]]:
    """Let one member match well and score as in `plain`, another match badly and score as in `near`."""
    return [
        [Tried(result("plain", 0.1), first, first), Tried(result("near", 0.8), second, second)]
        for first, second in zip(plain, near, strict=True)
    ]


def picked(criterion: Criterion, *candidates: MemberResult) -> str | None:
    found = criterion.pick(candidates)
    return None if found is None else found.member


def test_trusts_the_member_that_was_better_though_it_matched_worse() -> None:
    criterion = learn(rehearsal([10.0, 11.0, 9.0, 10.0], [14.0, 13.0, 15.0, 14.0]), "fed")
    assert criterion.trusts_forecast
    assert criterion.gain == pytest.approx(4.0)
    assert picked(criterion, result("plain", 0.1), result("near", 0.8)) == "near"


def test_leaves_the_choice_to_the_loss_where_that_is_as_good() -> None:
    criterion = learn(rehearsal([14.0, 13.0, 15.0, 14.0], [10.0, 11.0, 9.0, 10.0]), "fed")
    assert not criterion.trusts_forecast
    assert picked(criterion, result("plain", 0.1), result("near", 0.8)) is None


def test_a_much_better_match_than_in_the_rehearsal_is_expected_to_score_more() -> None:
    losses, scores = (0.4, 0.1, 0.02, 0.005), (9.0, 14.0, 21.0, 27.0)
    tried = [
        [Tried(result("plain", loss), score, score), Tried(result("near", 0.8), 15.0, 15.0)]
        for loss, score in zip(losses, scores, strict=True)
    ]
    criterion = Criterion(fit(tried, "fed"), True, 1.0)
    assert picked(criterion, result("plain", 0.4), result("near", 0.8)) == "near"
    assert picked(criterion, result("plain", 0.001), result("near", 0.8)) == "plain"


def test_a_loss_that_says_nothing_within_an_image_does_not_choose() -> None:
    """Under noise easy images are matched better and score more, but the best match of an image is that of noise."""
    source = generator(0)
    tried = []
    for ease in range(12):
        noise = torch.rand(2, generator=source)
        losses = [float(10 ** (-0.1 * (ease + 2 * draw))) for draw in noise]
        tried.append(
            [
                Tried(result("first", losses[0]), 10.0 + ease, 0.0),
                Tried(result("second", losses[1]), 12.0 + ease, 0.0),
            ]
        )
    forecast = fit(tried, "fed")
    assert abs(forecast.behind) < 0.5
    assert picked(Criterion(forecast, True, 1.0), result("first", 0.1), result("second", 0.13)) == "second"


def test_what_failed_or_was_never_tried_is_not_picked() -> None:
    criterion = learn(rehearsal([10.0] * 4, [14.0] * 4), "fed")
    assert picked(criterion, result("near", math.inf), result("plain", 0.3)) == "plain"
    assert picked(criterion, result("new", 0.01)) is None


def test_too_few_images_teach_nothing() -> None:
    assert not learn([], "fed").trusts_forecast
    assert not learn(rehearsal([10.0], [14.0]), "original").trusts_forecast
