"""What a few scores let one believe about the rest."""

import pytest
import torch

from gradveil.rng import generator
from gradveil.search.beliefs import Beliefs, choose_rejected, weigh
from gradveil.search.select import Criterion
from tests.search.tables import make_world


def test_all_images_seen_leave_no_doubt() -> None:
    values = make_world(generator(1, "world"), candidates=30)["trapezoid-21"]
    beliefs, _ = weigh(values, 40, Criterion(), None, 0.0)
    assert float(beliefs.deviations.max()) == 0.0
    assert beliefs.centres.argsort().tolist() == values.mean(1).argsort().tolist()
    few, spread = weigh(values[:, :8], 40, Criterion(), None, 0.0)
    assert float(few.deviations.min()) > 0.01
    assert 0.05 < spread < 0.2


def test_chances_add_up_to_those_who_are_kept() -> None:
    centres = torch.linspace(0, 1, 50, dtype=torch.float64)
    beliefs = Beliefs(centres, torch.full_like(centres, 0.1))
    chances = beliefs.chances(10, torch.ones_like(centres), generator(0))
    assert float(chances.sum()) == pytest.approx(10, abs=0.3)
    assert chances.tolist() == sorted(chances.tolist(), reverse=True)
    half = beliefs.chances(10, torch.full_like(centres, 0.5), generator(0))
    assert float(half[15:25].sum()) > float(chances[15:25].sum())


def test_rejection_keeps_within_its_budget_and_spares_leaders() -> None:
    chances = torch.tensor([0.9, 0.001, 0.01, 0.5, 0.0])
    assert choose_rejected(chances, 0.005, set()) == [1, 4]
    assert choose_rejected(chances, 0.005, {4}) == [1]
    assert choose_rejected(chances, 0.0, set()) == [4]
