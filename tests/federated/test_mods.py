"""The mod that defends updates: what leaves is defended, and when anything is wrong nothing leaves."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from flwr.clientapp.mod import LocalDpMod, arrays_size_mod
from torch import Tensor

from gradveil.defences import Clip
from gradveil.errors import InputError
from gradveil.federated.flower import ArrayRecord, Context, Message, MetricRecord, RecordDict
from gradveil.federated.flower_internals import REFUSED, make_run
from gradveil.federated.mods import BUFFERS, DEFENCE, CallNext, DefenceMod, make_secret_generator
from gradveil.types import Update
from tests.federated.small_app import ask, describe, make_app, make_net, read_arrays, read_change, true_change

TRAINED = ("conv.weight", "conv.bias", "norm.weight", "norm.bias", "head.weight", "head.bias")
LOCAL_DP = LocalDpMod(1.0, 1.0, 1.0, 1e-5)


def assert_refused(reply: Message, reason: str) -> None:
    assert reply.has_error()
    assert not reply.has_content()
    assert reply.error.code == REFUSED
    assert reason in str(reply.error.reason)
    assert "\n" not in str(reply.error.reason)


def test_the_defence_of_the_node_acts_on_the_change() -> None:
    reply = ask(make_app([DefenceMod(describe())]), {DEFENCE: "clip:0.01"})
    plain = {name: true_change()[name] for name in TRAINED}
    wanted = Clip(0.01).release(Update(plain, 2), torch.Generator()).tensors
    change = read_change(reply)
    for name in TRAINED:
        assert torch.allclose(change[name], wanted[name], atol=1e-7)
    assert reply.content["metrics"]["num-examples"] == 2


def test_without_a_defence_the_reply_is_the_apps() -> None:
    assert read_change(ask(make_app([DefenceMod(describe())]), {DEFENCE: "none"})).keys() == true_change().keys()
    change = read_change(ask(make_app([DefenceMod(describe())]), {DEFENCE: "none"}))
    assert all(torch.allclose(change[name], tensor, atol=1e-7) for name, tensor in true_change().items())


def test_buffers_pass_with_their_types_or_stay() -> None:
    app = make_app([DefenceMod(describe())])
    sent = make_net().state_dict()
    for choice, moves in (("send", True), ("keep", False)):
        arrays = read_arrays(ask(app, {DEFENCE: "gaussian:1e-3", BUFFERS: choice}))
        assert {name: tensor.dtype for name, tensor in arrays.items()} == {n: t.dtype for n, t in sent.items()}
        assert torch.equal(arrays["scale"], sent["scale"])
        assert int(arrays["norm.num_batches_tracked"]) == int(moves)
        assert torch.equal(arrays["norm.running_mean"], sent["norm.running_mean"]) is not moves


def test_whole_number_buffers_may_come_averaged_as_floats() -> None:
    """Flower's FedAvg sends them so from the second round on."""
    state = dict(make_net().state_dict())
    state["norm.num_batches_tracked"] = torch.tensor(4.0, dtype=torch.float64)
    reply = ask(make_app([DefenceMod(describe())]), {DEFENCE: "none"}, state=state)
    tracked = read_arrays(reply)["norm.num_batches_tracked"]
    assert (tracked.dtype, int(tracked)) == (torch.int64, 5)


def test_the_difference_may_be_sent() -> None:
    reply = ask(make_app([DefenceMod(describe(sends="difference"))]), {DEFENCE: "none"})
    arrays = read_arrays(reply)
    assert all(torch.allclose(arrays[name], true_change()[name], atol=1e-7) for name in TRAINED)


def test_the_older_kind_of_client_sends_numbered_arrays() -> None:
    make_run()
    arrays = [tensor.numpy() for tensor in make_net().state_dict().values()]
    request = Message(RecordDict({"fitins.parameters": ArrayRecord(arrays)}), 1, "train")

    def answer(message: Message, context: Context) -> Message:
        del context
        new = [array + np.ones_like(array) if array.shape == (3,) else array for array in arrays]
        content = RecordDict({"fitres.parameters": ArrayRecord(new)})
        content["fitres.num_examples"] = MetricRecord({"num_examples": 2})
        return Message(content, reply_to=message)

    context = Context(1, 1, {DEFENCE: "clip:0.5"}, RecordDict(), {})
    reply = DefenceMod(describe())(request, context, answer)
    record = reply.content.array_records["fitres.parameters"]
    assert list(record) == [str(number) for number in range(len(arrays))]
    changes = [array - old for array, old in zip(record.to_numpy_ndarrays(), arrays, strict=True)]
    assert sum(float(np.square(change).sum()) for change in changes) == pytest.approx(0.25, rel=1e-4)


def test_the_run_config_decides_nothing() -> None:
    app = make_app([DefenceMod(describe())])
    assert_refused(ask(app, {}, {DEFENCE: "none"}), DEFENCE)
    change = read_change(ask(app, {DEFENCE: "clip:1e-9"}, {DEFENCE: "none"}))
    assert all(float(change[name].abs().max()) < 1e-6 for name in TRAINED)


def test_a_default_stands_in_for_missing_settings_only() -> None:
    app = make_app([DefenceMod(describe(), default="clip:1e-9")])
    assert float(read_change(ask(app, {}))["head.weight"].abs().max()) < 1e-6
    assert float(read_change(ask(app, {DEFENCE: "none"}))["head.weight"].abs().max()) > 1e-4
    with pytest.raises(InputError):
        DefenceMod(describe(), default="gausian:1")


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ({DEFENCE: "gausian:1"}, "gausian"),
        ({DEFENCE: "gaussian:-1"}, "gaussian"),
        ({DEFENCE: ""}, "defence"),
        ({DEFENCE: 3}, "3"),
        ({DEFENCE: "policy:3-1-7"}, "data loader"),
        ({DEFENCE: "dpsgd:clip=1:noise=1"}, "data loader"),
        ({DEFENCE: "gaussian:3e38"}, "not finite"),
        ({DEFENCE: "none", BUFFERS: "drop"}, BUFFERS),
    ],
)
def test_a_bad_setting_sends_nothing(node: dict[str, Any], reason: str) -> None:
    assert_refused(ask(make_app([DefenceMod(describe())]), node), reason)


def spoil_with(name: str, tensor: Tensor) -> Any:
    def spoil(state: dict[str, Tensor]) -> None:
        state[name] = tensor

    return spoil


def remove_bias(state: dict[str, Tensor]) -> None:
    del state["head.bias"]


def fail(state: dict[str, Tensor]) -> None:
    raise RuntimeError(f"the private value {float(state['head.bias'][0])}")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoil_with("head.bias", torch.full((3,), float("nan"))), "NaN"),
        (spoil_with("norm.running_mean", torch.full((4,), float("inf"))), "NaN or infinity"),
        (spoil_with("head.bias", torch.zeros(1)), "shape"),
        (spoil_with("head.bias", torch.zeros(3, dtype=torch.float64)), "float64"),
        (spoil_with("images", torch.zeros(3)), "images"),
        (spoil_with("scale", torch.full((1,), 2.0)), "frozen"),
        (remove_bias, "head.bias"),
    ],
)
def test_a_bad_reply_sends_nothing(spoil: Any, reason: str) -> None:
    assert_refused(ask(make_app([DefenceMod(describe())], spoil), {DEFENCE: "gaussian:1e-3"}), reason)


def test_an_exception_sends_nothing_of_what_it_says() -> None:
    reply = ask(make_app([DefenceMod(describe())], fail), {DEFENCE: "none"})
    assert_refused(reply, "RuntimeError")
    assert "private" not in str(reply.error.reason)


def test_a_bad_request_sends_nothing() -> None:
    app = make_app([DefenceMod(describe())])
    state = dict(make_net().state_dict())
    assert_refused(ask(app, {DEFENCE: "none"}, state={**state, "head.bias": torch.zeros(9)}), "the server sent")
    nothing = torch.full((3,), float("nan"))
    assert_refused(ask(app, {DEFENCE: "none"}, state={**state, "head.bias": nothing}), "the server sent")


def test_replies_to_other_messages_pass_without_arrays() -> None:
    app = make_app([DefenceMod(describe())])
    assert ask(app, {}, kind="evaluate").has_content()
    assert_refused(ask(app, {}, kind="evaluate", extra="leak"), "carries arrays")


def pass_on(message: Message, context: Context, call_next: CallNext) -> Message:
    return call_next(message, context)


def test_it_has_to_be_the_innermost_mod() -> None:
    defence = DefenceMod(describe())
    for inner in (LOCAL_DP, arrays_size_mod):
        assert_refused(ask(make_app([defence, inner]), {DEFENCE: "none"}), "last in the list")
    assert ask(make_app([arrays_size_mod, defence]), {DEFENCE: "none"}).has_content()


def test_flowers_own_privacy_mods_are_refused_around_differences() -> None:
    defence = DefenceMod(describe(sends="difference"))
    assert_refused(ask(make_app([LOCAL_DP, pass_on, defence]), {DEFENCE: "none"}), "take a reply for weights")
    assert ask(make_app([LOCAL_DP, DefenceMod(describe())]), {DEFENCE: "none"}).has_content()


def test_the_noise_is_secret() -> None:
    """The same seed twice would give the same noise; 32 bits of one could be tried out."""
    app = make_app([DefenceMod(describe())])
    torch.manual_seed(0)
    first = read_change(ask(app, {DEFENCE: "gaussian:1"}))["head.weight"]
    torch.manual_seed(0)
    second = read_change(ask(app, {DEFENCE: "gaussian:1"}))["head.weight"]
    assert abs(float(torch.corrcoef(torch.stack([first.flatten(), second.flatten()]))[0, 1])) < 0.2
    assert float(first.std()) == pytest.approx(1, abs=0.1)


def test_a_secret_generator_draws_from_a_full_state() -> None:
    generators = [make_secret_generator() for _ in range(2)]
    draws = [torch.rand(100_000, generator=generator) for generator in generators]
    assert not torch.equal(*draws)
    assert all(float(draw.mean()) == pytest.approx(0.5, abs=0.01) for draw in draws)
    # A seeded generator fills its state from 32 bits by a fixed rule; this one's words follow no such rule.
    words = make_secret_generator().get_state().view(torch.int64)[3:627]
    seeded = torch.Generator().manual_seed(int(words[0])).get_state().view(torch.int64)[3:627]
    assert words[0] == seeded[0]
    assert int((words[1:] == seeded[1:]).sum()) == 0
    assert int(words.min()) >= 0
    assert int(words.max()) < 2**32


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("import gradveil.federated; print('flwr' in sys.modules)", "False"),
        ("import flwr; before = dict(os.environ); import gradveil.federated.gate; print(os.environ == before)", "True"),
    ],
)
def test_importing_the_mods_disturbs_nobody(code: str, printed: str) -> None:
    """The room is entered without Flower, and an app that imported Flower itself keeps its environment."""
    ended = subprocess.run(
        [sys.executable, "-c", f"import os, sys; {code}"], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == printed
