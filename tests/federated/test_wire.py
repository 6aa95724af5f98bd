"""Records and tensors: exact both ways, and nothing odd comes in."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from gradveil.federated.flower import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from gradveil.federated.outcomes import ReplyError
from gradveil.federated.wire import (
    BUFFERS,
    FIGURES,
    ROUND,
    UPDATE,
    Expected,
    read_client,
    read_instruction,
    read_reply,
    to_arrays,
    to_tensors,
    write_instruction,
    write_reply,
)
from gradveil.types import ONE_GRADIENT, Update

TRAINED = {"weight": torch.zeros(2, 3), "scale": torch.zeros(())}
STATISTICS = {"mean": torch.zeros(2), "num_batches_tracked": torch.tensor(7)}
EXPECTED = Expected(TRAINED, STATISTICS, 100.0)


def make_reply() -> RecordDict:
    tensors = {"weight": torch.arange(6.0).view(2, 3), "scale": torch.tensor(0.5)}
    buffers = {"mean": torch.ones(2), "num_batches_tracked": torch.tensor(8)}
    return write_reply(3, Update(tensors, 5, ONE_GRADIENT, None, buffers), 1.25)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3),
        torch.tensor(0.5),
        torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        torch.tensor([True, False]),
        torch.randn(3, dtype=torch.float64).requires_grad_(),
        torch.zeros(0, 4),
    ],
)
def test_tensors_come_back_exactly(tensor: Tensor) -> None:
    back = to_tensors(to_arrays({"name": tensor}))["name"]
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(back, tensor)


def test_every_client_gets_records_of_its_own() -> None:
    arrays = to_arrays(TRAINED)
    first, second = write_instruction(arrays, 2, 9), write_instruction(arrays, 2, 9)
    del first.array_records["weights"]["scale"]
    weights, number, rounds = read_instruction(second)
    assert (set(weights), number, rounds) == ({"weight", "scale"}, 2, 9)


@pytest.mark.parametrize("config", [{"round": 0, "rounds": 3}, {"round": 4, "rounds": 3}, {"round": "1", "rounds": 3}])
def test_a_client_refuses_an_odd_round(config: dict[str, int | str]) -> None:
    content = write_instruction(to_arrays(TRAINED), 1, 3)
    content[ROUND] = ConfigRecord(dict(config))
    with pytest.raises(ReplyError, match="whole numbers"):
        read_instruction(content)


def test_a_reply_comes_back_exactly() -> None:
    reply = read_reply(make_reply(), EXPECTED, ONE_GRADIENT)
    assert (reply.client, reply.update.images, reply.loss) == (3, 5, 1.25)
    assert torch.equal(reply.update.tensors["weight"], torch.arange(6.0).view(2, 3))
    assert reply.update.buffers is not None
    assert reply.update.buffers["num_batches_tracked"].dtype == torch.int64
    assert reply.update.labels is None
    assert read_client(make_reply()) == 3


def set_array(record: str, name: str, values: object) -> Callable[[RecordDict], None]:
    def change(content: RecordDict) -> None:
        content.array_records[record][name] = Array(np.asarray(values))

    return change


def set_figures(**figures: float) -> Callable[[RecordDict], None]:
    def change(content: RecordDict) -> None:
        content[FIGURES] = MetricRecord({"client": 3, "images": 5, "loss": 1.0, **figures})

    return change


def drop_buffers(content: RecordDict) -> None:
    del content[BUFFERS]


def add_record(content: RecordDict) -> None:
    content["weights"] = ArrayRecord()


def rename(content: RecordDict) -> None:
    arrays = content.array_records[UPDATE]
    arrays["other"] = arrays.pop("weight")


def declare_falsely(content: RecordDict) -> None:
    arrays = content.array_records[UPDATE]
    arrays["weight"] = Array("float32", (2, 3), "numpy.ndarray", Array(np.ones(1, np.float32)).data)


def send_garbage(content: RecordDict) -> None:
    content.array_records[UPDATE]["weight"] = Array("float32", (2, 3), "numpy.ndarray", b"garbage")


def send_too_much(content: RecordDict) -> None:
    content.array_records[UPDATE]["weight"] = Array("float32", (2, 3), "numpy.ndarray", b"0" * 10**5)


ODD = {
    "no buffers": (drop_buffers, "has the records"),
    "one record too many": (add_record, "has the records"),
    "another name": (rename, "names other, weight"),
    "NaN": (set_array(UPDATE, "weight", np.full((2, 3), np.nan, np.float32)), "NaN or infinity"),
    "1e30": (set_array(UPDATE, "weight", np.full((2, 3), 1e30, np.float32)), "above 100"),
    "another shape": (set_array(UPDATE, "weight", np.zeros((3, 2), np.float32)), r"float32\[3, 2\], not"),
    "one number": (set_array(UPDATE, "weight", np.zeros(1, np.float32)), r"float32\[1\], not"),
    "another type": (set_array(UPDATE, "weight", np.zeros((2, 3))), "float64"),
    "false shape": (declare_falsely, r"holds float32\[1\]"),
    "garbage": (send_garbage, "cannot be read"),
    "too many bytes": (send_too_much, "too many"),
    "NaN in a buffer": (set_array(BUFFERS, "mean", np.full(2, np.nan, np.float32)), "NaN or infinity"),
    "a buffer far away": (set_array(BUFFERS, "num_batches_tracked", np.array(10**6)), "change of the buffers"),
    "a loss of NaN": (set_figures(loss=float("nan")), "loss is nan"),
    "no images": (set_figures(images=0), "of 0 images"),
    "half an image": (set_figures(images=0.5), "whole numbers"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_reply_is_refused_with_its_reason(name: str) -> None:
    change, reason = ODD[name]
    content = make_reply()
    change(content)
    with pytest.raises(ReplyError, match=reason):
        read_reply(content, EXPECTED, ONE_GRADIENT)


def test_a_reply_need_not_say_who_it_is_from() -> None:
    assert read_client(RecordDict()) is None
    assert read_client(RecordDict({FIGURES: MetricRecord({"client": 0.5})})) is None
