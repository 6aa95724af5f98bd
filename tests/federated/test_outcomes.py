"""What came of a round, in JSON and in words; which updates are refused; and what a run ends with."""

from dataclasses import replace

import pytest
import torch

from gradveil.client import Client
from gradveil.federated.outcomes import (
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
    with pytest.raises(ReplyError, match="4 images: a round of this client has 3"):
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


def test_a_run_ends_with_the_accuracy_of_its_last_round() -> None:
    rounds = (RoundOutcome(1, 4, (), 2.0), RoundOutcome(2, 4, (), 1.0, 0.75))
    assert FederatedResult({}, rounds, 1.0).test_accuracy == 0.75


def test_an_outcome_turns_into_json_and_back() -> None:
    outcome = RoundOutcome(3, 9, (Dropped(None, "no reply within 600 s"),), 1.5, None)
    assert RoundOutcome.from_record(outcome.to_record()) == outcome
    assert str(outcome.dropped[0]) == "an unknown client: no reply within 600 s"


def test_the_error_names_a_few_of_the_dropped() -> None:
    dropped = tuple(Dropped(client, "it replied twice") for client in range(5))
    text = str(TooFewRepliesError(RoundOutcome(3, 5, dropped, None), 10, 6))
    assert text.startswith("round 3 stopped: 5 of 10 replies are valid and 6 are needed (client 0: it replied twice; ")
    assert "; and 2 more)" in text
