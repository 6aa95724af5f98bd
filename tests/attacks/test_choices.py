"""How the results of members become one."""

import math

import pytest
import torch

from gradveil.attacks import LowestLoss
from gradveil.attacks.choices import MemberResult, choose, closeness, is_matched, transforms_images
from gradveil.types import Reconstruction, Status
from tests.attacks.scenes import make_task, release
from tests.attacks.test_ensemble import KNOWN


def member(loss: float, inverts: bool) -> MemberResult:
    """Make a result of this loss; its pictures tell x from T(x)."""
    pictures = [torch.full((1, 1, 2, 2), value) for value in ((0.3, 0.4) if inverts else (0.1, 0.1))]
    status: Status = "ok" if math.isfinite(loss) else "failed"
    fed = pictures[1] if inverts else None
    made = Reconstruction(pictures[0], torch.zeros(1).long(), loss, status, transformed=fed)
    return MemberResult("through" if inverts else "plain", made, loss, loss, inverts)


@pytest.mark.parametrize(
    ("plain", "through", "original", "transformed"),
    [
        (0.1, 0.2, 0.1, 0.1),
        (0.1, 0.01, 0.1, 0.4),  # a better match wins at T(x) only
        (math.inf, 0.2, 0.3, 0.4),  # the other member failed
    ],
)
def test_each_target_has_its_own_winner(plain: float, through: float, original: float, transformed: float) -> None:
    result = choose(make_task(known=KNOWN), [member(plain, False), member(through, True)])
    assert result.transformed is not None
    assert float(result.images[0, 0, 0, 0]) == pytest.approx(original)
    assert float(result.transformed[0, 0, 0, 0]) == pytest.approx(transformed)


def test_without_a_policy_the_best_match_is_the_result() -> None:
    result = choose(make_task(), [member(0.2, False), member(0.1, True)])
    assert float(result.images[0, 0, 0, 0]) == pytest.approx(0.3)
    assert result.matching_loss == 0.1


def test_the_lowest_loss_needs_no_rehearsal() -> None:
    task = make_task()
    assert LowestLoss().rehearses(task, [release(task)]) == 0
    assert LowestLoss().task_for_members(task, [release(task)]) is task
    assert LowestLoss().needs == ()


def test_losses_count_in_decibels() -> None:
    assert closeness(0.1) == pytest.approx(10)
    assert closeness(0.0) == closeness(1e-9) == pytest.approx(60)
    assert closeness(math.inf) == closeness(1.7) == 0
    assert is_matched([member(1e-8, False)])
    assert not is_matched([member(1e-3, False)])


@pytest.mark.parametrize(
    ("known", "two"), [((), False), (("gaussian:1e-2",), False), (("crop-flip",), True), (("policy:3-1-7",), True)]
)
def test_known_transformations_make_x_a_target_of_its_own(known: tuple[str, ...], two: bool) -> None:
    assert transforms_images(make_task(known=known)) is two
