"""Outcomes: which updates are refused and why, and what a round and a run leave behind."""

import json
from dataclasses import replace

import pytest
import torch

from gradveil.client import Client
from gradveil.federated.outcome import (
    Dropped,
    FederatedResult,
    ReplyError,
    RoundOutcome,
    TooFewRepliesError,
    check_norm,
    check_update,
)
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.types import Batch, LocalTraining, Update

SPEC = ModelSpec("convnet-2", (1, 12, 12), 4, (0.5,), (0.5,))
WEIGHTS = SPEC.build(generator(0)).state_dict()


def release() -> Update:
    source = generator(1)
    batch = Batch(torch.rand(4, 1, 12, 12, generator=source), torch.arange(4))
    return Client(SPEC.build(generator(0)), LocalTraining(mode="train")).update(WEIGHTS, batch, (), source)


def test_a_good_update_passes() -> None:
    check_update(release(), WEIGHTS, 4, 1e4)


def test_an_update_of_more_images_than_the_client_has_is_refused() -> None:
    with pytest.raises(ReplyError, match="4 images: the client has 3"):
        check_update(release(), WEIGHTS, 3, 1e4)


@pytest.mark.parametrize(("value", "reason"), [(float("nan"), "NaN"), (float("inf"), "NaN"), (1e30, "norm")])
@pytest.mark.parametrize("part", ["tensors", "buffers"])
def test_an_update_that_is_not_usable_is_refused(part: str, value: float, reason: str) -> None:
    update = release()
    tensors = getattr(update, part)
    name = next(name for name, tensor in tensors.items() if tensor.is_floating_point())
    broken = {**tensors, name: torch.full_like(tensors[name], value)}
    bad = replace(update, tensors=broken) if part == "tensors" else replace(update, buffers=broken)
    with pytest.raises(ReplyError, match=reason):
        check_update(bad, WEIGHTS, 4, 1e4)


def test_the_norm_is_that_of_all_tensors_together() -> None:
    tensors = {"a": torch.tensor([3.0]), "b": torch.tensor([4.0])}
    check_norm("update", tensors, 5.0)
    with pytest.raises(ReplyError, match=r"the norm of its update is 5, above 4\.9"):
        check_norm("update", tensors, 4.9)


def test_an_outcome_comes_back_from_json() -> None:
    outcome = RoundOutcome(3, 8, (Dropped(1, "it is NaN"), Dropped(None, "no reply")), 0.5, 0.25)
    assert RoundOutcome.from_record(json.loads(json.dumps(outcome.to_record()))) == outcome


def test_too_few_replies_are_one_line_with_the_first_reasons() -> None:
    dropped = tuple(Dropped(client, f"reason {client}") for client in range(5))
    line = str(TooFewRepliesError(RoundOutcome(2, 1, dropped, None), 6, 4))
    assert "round 2" in line
    assert "1 of 6" in line
    assert "client 2: reason 2; and 2 more" in line
    assert "\n" not in line


def test_a_run_ends_with_the_accuracy_of_its_last_round() -> None:
    rounds = (RoundOutcome(1, 4, (), 2.0), RoundOutcome(2, 4, (), 1.0, 0.75))
    assert FederatedResult({}, rounds, 1.0).test_accuracy == 0.75
