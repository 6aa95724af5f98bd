"""Forecasts of what a picture scores."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from gradveil.attacks.choices import MemberResult
from gradveil.attacks.forecasts import PICTURE, Criterion, Forecast, Tried, fit, learn_fed, learn_original, options
from gradveil.rng import generator
from gradveil.types import Reconstruction, Status


def result(name: str, loss: float, value: float = 0.5, inverts: bool = False) -> MemberResult:
    status: Status = "ok" if math.isfinite(loss) else "failed"
    picture = torch.full((1, 1, 2, 2), value)
    return MemberResult(name, Reconstruction(picture, torch.zeros(1).long(), loss, status), loss, loss, inverts)


def tried(one: MemberResult, fed: float, original: float | None = None) -> Tried:
    """Let a member score so much at T(x) and at x; at x its picture of T(x) scores as much."""
    shown = fed if original is None else original
    return Tried(one, fed, shown, shown)


def rehearsal(plain: Sequence[float], near: Sequence[float]) -> list[list[Tried]]:
    """Let one member match well and score as in `plain`, another match badly and score as in `near`."""
    return [
        [tried(result("plain", 0.1), first), tried(result("near", 0.8), second)]
        for first, second in zip(plain, near, strict=True)
    ]


def picked(criterion: Criterion, *candidates: MemberResult) -> str | None:
    found = criterion.pick(candidates)
    return None if found is None else found.member


def test_trusts_the_member_that_was_better_though_it_matched_worse() -> None:
    criterion = learn_fed(rehearsal([10.0, 11.0, 9.0, 10.0], [14.0, 13.0, 15.0, 14.0]))
    assert criterion.trusts_forecast
    assert criterion.gain == pytest.approx(4.0)
    assert picked(criterion, result("plain", 0.1), result("near", 0.8)) == "near"


def test_leaves_the_choice_to_the_loss_where_that_is_as_good() -> None:
    criterion = learn_fed(rehearsal([14.0, 13.0, 15.0, 14.0], [10.0, 11.0, 9.0, 10.0]))
    assert not criterion.trusts_forecast
    assert picked(criterion, result("plain", 0.1), result("near", 0.8)) is None


def test_a_much_better_match_than_in_the_rehearsal_is_expected_to_score_more() -> None:
    losses, scores = (0.4, 0.1, 0.02, 0.005), (9.0, 14.0, 21.0, 27.0)
    seen = [
        [tried(result("plain", loss), score), tried(result("near", 0.8), 15.0)]
        for loss, score in zip(losses, scores, strict=True)
    ]
    criterion = Criterion(fit(seen, "fed"), True, 1.0)
    assert picked(criterion, result("plain", 0.4), result("near", 0.8)) == "near"
    assert picked(criterion, result("plain", 0.001), result("near", 0.8)) == "plain"


def test_a_loss_that_says_nothing_within_an_image_does_not_choose() -> None:
    """Under noise easy images are matched better and score more, but the best match of an image is that of noise."""
    source = generator(0)
    seen = []
    for ease in range(12):
        noise = torch.rand(2, generator=source)
        losses = [float(10 ** (-0.1 * (ease + 2 * draw))) for draw in noise]
        seen.append([tried(result("first", losses[0]), 10.0 + ease), tried(result("second", losses[1]), 12.0 + ease)])
    forecast = fit(seen, "fed")
    assert abs(forecast.behind) < 0.5
    assert picked(Criterion(forecast, True, 1.0), result("first", 0.1), result("second", 0.13)) == "second"


def test_what_failed_or_was_never_tried_is_not_picked() -> None:
    criterion = learn_fed(rehearsal([10.0] * 4, [14.0] * 4))
    assert picked(criterion, result("near", math.inf), result("plain", 0.3)) == "plain"
    assert picked(criterion, result("new", 0.01)) is None


LOWEST = Criterion(Forecast({}, {}, 0.0), False, 0.0)


def looking(picture: Sequence[float], near: Sequence[float]) -> list[list[Tried]]:
    """Let one member show T(x) and score at x as in `picture`, and one look for x itself and score as in `near`."""
    return [
        [tried(result("plain", 0.1), 20.0, first), tried(result("near", 0.8, inverts=True), 10.0, second)]
        for first, second in zip(picture, near, strict=True)
    ]


def test_the_picture_of_the_original_is_that_of_the_fed_image_unless_another_is_clearly_better() -> None:
    candidates = [result("plain", 0.1), result("near", 0.8, inverts=True)]
    found = options(candidates[0], candidates)
    assert [one.member for one in found] == [PICTURE, "near"]
    clearly = learn_original(looking([10.0, 11.0, 9.0, 10.0], [14.0, 13.0, 15.0, 14.0]), LOWEST)
    assert picked(clearly, *found) == "near"
    hardly = learn_original(looking([10.0, 11.0, 9.0, 10.0], [11.5, 15.0, 9.0, 9.5]), LOWEST)
    assert picked(hardly, *found) is None, "it gained more than one standard error, less than two"


def test_who_looks_through_a_policy_offers_both_of_its_pictures() -> None:
    through = result("through", 0.01, inverts=True)
    through = replace(through, result=replace(through.result, transformed=through.result.images + 0.1))
    found = options(through, [result("plain", 0.1), through])
    assert [one.member for one in found] == [PICTURE, "through"]
    assert [round(float(one.result.images[0, 0, 0, 0]), 3) for one in found] == [0.6, 0.5]
    shown = [
        [tried(result("plain", 0.1), 9.0), Tried(through, 20.0, poor, good)]
        for poor, good in zip([8.0, 9.0, 8.0, 9.0], [14.0, 13.0, 14.0, 15.0], strict=True)
    ]
    assert picked(learn_original(shown, LOWEST), *found) is None, "its picture of T(x) was the better one at x"


def test_too_few_images_teach_nothing() -> None:
    assert not learn_fed([]).trusts_forecast
    assert not learn_original(rehearsal([10.0], [14.0]), LOWEST).trusts_forecast
