"""What DP-SGD promises, against Opacus and first principles."""

import warnings

import pytest
import torch
from opacus import PrivacyEngine
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from gradveil.defences import DPSGD, guarantee_of, parse_arm
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
    guarantee = guarantee_of([DPSGD(1.1, 1.0)], 10 / 40, steps)
    assert guarantee is not None
    assert guarantee.epsilon == pytest.approx(expected, rel=1e-12)


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
    guarantee = guarantee_of(parse_arm(arm).defences, 0.1, 10)
    assert guarantee is not None
    assert guarantee.epsilon is None
    assert remark in guarantee.remark
    assert "no ε" in str(guarantee)


def test_what_follows_the_noise_costs_nothing() -> None:
    alone, more = (
        guarantee_of(parse_arm(arm).defences, 0.1, 10)
        for arm in ("dpsgd:noise=1:clip=1", "policy:3-1-7,dpsgd:noise=1:clip=1,prune:90,sign")
    )
    assert alone == more
    assert guarantee_of(parse_arm("gaussian:1").defences, 0.1, 10) is None
