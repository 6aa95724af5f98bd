"""The training loss."""

import pytest
import torch
from torch.nn import functional as F

from gradveil.errors import SettingsError
from gradveil.losses import CrossEntropy, Loss, parse_loss
from gradveil.rng import generator

LOGITS = torch.randn(6, 4, generator=generator(0, "logits"))
LABELS = torch.tensor([0, 1, 2, 3, 0, 1])


@pytest.mark.parametrize("loss", [CrossEntropy(), CrossEntropy(0.1), CrossEntropy(0.05)], ids=str)
def test_a_loss_is_read_as_it_is_written(loss: Loss) -> None:
    assert parse_loss(str(loss)) == loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("soft", [False, True])
def test_the_loss_of_a_batch_is_the_mean_over_its_images(smoothing: float, soft: bool) -> None:
    labels = F.one_hot(LABELS, 4).float() * 0.7 + 0.3 / 4 if soft else LABELS
    loss = CrossEntropy(smoothing)
    torch.testing.assert_close(loss(LOGITS, labels), loss.per_image(LOGITS, labels).mean())
    one = loss.per_image(LOGITS[2:3], labels[2:3])
    torch.testing.assert_close(loss.per_image(LOGITS, labels)[2:3], one)


def test_smoothing_spreads_a_share_of_the_label_over_all_classes() -> None:
    soft = 0.8 * F.one_hot(LABELS, 4) + 0.2 / 4
    torch.testing.assert_close(CrossEntropy(0.2)(LOGITS, LABELS), CrossEntropy()(LOGITS, soft))


def test_a_loss_of_ones_own_needs_one_function() -> None:
    class Squared(Loss):
        def per_image(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return (logits - F.one_hot(labels, logits.shape[1])).square().sum(1)

        def __str__(self) -> str:
            return "squared"

    expected = (LOGITS - F.one_hot(LABELS, 4)).square().sum(1).mean()
    torch.testing.assert_close(Squared()(LOGITS, LABELS), expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mse",
        "cross-entropy:",
        "cross-entropy:smooth=0.1",
        "cross-entropy:smoothing",
        "cross-entropy:smoothing=",
        "cross-entropy:smoothing=1",
        "cross-entropy:smoothing=-0.1",
        "cross-entropy:smoothing=nan",
    ],
)
def test_other_losses_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="write cross-entropy, or cross-entropy:smoothing=S"):
        parse_loss(text)
