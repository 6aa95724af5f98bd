"""What DP-SGD promises, against Opacus and first principles."""

import warnings

import pytest
import torch
from opacus import PrivacyEngine
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from gradveil.defences import DPSGD, guarantee_of, parse_arm, success_bound
from gradveil.rng import generator
from tests.defences.test_dpsgd import batch, build


def test_epsilon_equals_that_of_the_same_run_under_opacus() -> None:
    """Opacus trains; its accountant then counts what it did, step by step."""
    model = build("mlp")
    images = TensorDataset(batch(40).images, batch(40).labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = PrivacyEngine(accountant="rdp")
        private, optimiser, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
            data_loader=DataLoader(images, batch_size=10),
            noise_multiplier=1.1,
            max_grad_norm=1.0,
        )
        steps = 0
        for _ in range(2):
            for pixels, labels in loader:
                optimiser.zero_grad()
                F.cross_entropy(private(pixels), labels).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                steps += 1
        expected = engine.get_epsilon(1e-5)
    found = guarantee_of([DPSGD(1.1, 1.0)], 10 / 40, steps)
    assert found is not None
    assert found.epsilon == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("arm", "remark"),
    [
        ("dpsgd:noise=0:clip=1", "without noise"),
        ("mixup,dpsgd:noise=1:clip=1", "gradients of others"),
        ("instahide,dpsgd:noise=1:clip=1", "gradients of others"),
        ("dpsgd:noise=1:clip=1,soteria:40", "again"),
    ],
)
def test_where_there_is_no_guarantee_none_is_stated(arm: str, remark: str) -> None:
    found = guarantee_of(parse_arm(arm).defences, 0.1, 10)
    assert found is not None
    assert found.epsilon is None
    assert remark in found.remark
    assert "no ε" in str(found)


def test_what_follows_the_noise_costs_nothing() -> None:
    alone, more = (
        guarantee_of(parse_arm(arm).defences, 0.1, 10)
        for arm in ("dpsgd:noise=1:clip=1", "policy:3-1-7,dpsgd:noise=1:clip=1,prune:90,sign")
    )
    assert alone == more
    assert guarantee_of(parse_arm("gaussian:1").defences, 0.1, 10) is None


@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0])
def test_the_bound_is_reached_by_the_best_test_and_by_no_more(noise: float) -> None:
    """Tell N(0, σ²) from N(1, σ²) by a threshold that errs with the probability of chance (Neyman and Pearson)."""
    draws = torch.randn(200_000, generator=generator(0), dtype=torch.float64) * noise
    threshold = float(draws.quantile(0.95))
    power = float((draws + 1 > threshold).double().mean())
    assert success_bound(noise, 0.05) == pytest.approx(power, abs=0.01)


def test_the_bound_lies_between_chance_and_certainty() -> None:
    bounds = [success_bound(noise) for noise in (0.0, 0.1, 1.0, 10.0, 1e6)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == 1
    assert bounds[-1] == pytest.approx(0.01, rel=1e-3)
    assert [success_bound(1.0, chance) for chance in (0.0, 1.0)] == [0, 1]
