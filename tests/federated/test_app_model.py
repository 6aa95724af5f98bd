"""How messages of somebody's app are read."""

from typing import Any

import numpy as np
import pytest
import torch

from gradveil.errors import DataError, SettingsError
from gradveil.federated.app_model import find_count, find_round_number, is_training
from gradveil.federated.flower import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from gradveil.federated.flower_internals import make_run
from gradveil.types import LocalTraining
from tests.federated.small_app import SmallNet, describe, make_images, make_net, make_request, true_change

make_run()


def make_reply(record: ArrayRecord, images: float = 2) -> Message:
    content = RecordDict({"arrays": record, "metrics": MetricRecord({"num-examples": images})})
    return Message(content, reply_to=make_request())


def trained_state() -> dict[str, Any]:
    return {name: tensor + true_change()[name] for name, tensor in make_net().state_dict().items()}


def test_the_attackers_model_takes_pixels() -> None:
    app, (fed, _) = describe(), make_images()
    pixels = app.to_pixels(fed)
    assert 0 <= float(pixels.min()) < float(pixels.max()) <= 1
    assert torch.allclose(app.pixel_model().eval()(pixels), app.module.eval()(fed), atol=1e-5)
    without = describe(normalises=False)
    assert without.pixel_model() is without.module
    assert torch.equal(without.to_pixels(fed), fed)


def test_an_update_is_the_change_of_trained_parameters_with_the_buffers_beside_it() -> None:
    app = describe()
    sent = app.read_sent(make_request())
    update = app.read_update(sent, make_reply(ArrayRecord(trained_state())))
    assert set(update.tensors) == {f"1.{name}" for name in app.trained}
    assert "1.scale" not in update.tensors
    assert update.buffers is not None
    assert int(update.buffers["1.norm.num_batches_tracked"]) == 1
    assert (update.images, update.labels, update.local) == (2, None, app.local)
    for name in app.trained:
        assert torch.allclose(update.tensors[f"1.{name}"], true_change()[name], atol=1e-7)


def test_a_round_can_be_attacked_with_the_weights_that_were_sent() -> None:
    app = describe()
    captured = app.read_round(app.read_sent(make_request()), make_reply(ArrayRecord(trained_state())), 3, 7, ())
    model = captured.task(None, "cpu").model
    assert torch.equal(model.state_dict()["1.head.weight"], make_net().head.weight)
    assert (captured.phase, captured.client, captured.participants) == ("round-3", 7, 1)


def test_numbered_arrays_are_in_the_models_order() -> None:
    """The older kind of Flower client sends lists."""
    arrays = [tensor.numpy() for tensor in trained_state().values()]
    read = describe().read_reply(make_reply(ArrayRecord(arrays)))
    assert list(read) == list(make_net().state_dict())


@pytest.mark.parametrize(
    "array",
    [
        Array("float32", (3,), "pickle", b"garbage"),
        Array("float32", (3,), "numpy.ndarray", b"garbage"),
        Array("float32", (3,), "numpy.ndarray", b"PK\x03\x04"),
        Array("float32", (3,), "numpy.ndarray", b""),
        Array(np.array(["text", "is", "bad"])),
    ],
)
def test_an_array_that_cannot_be_read_is_refused(array: Array) -> None:
    record = ArrayRecord(trained_state())
    record["head.bias"] = array
    with pytest.raises(DataError, match=r"head\.bias"):
        describe().read_reply(make_reply(record))


@pytest.mark.parametrize("images", [0, -1, float("nan"), float("inf"), 1e300])
def test_a_number_of_images_that_cannot_be_is_refused(images: float) -> None:
    with pytest.raises(DataError, match="number of images"):
        find_count(make_reply(ArrayRecord(), images).content)


def test_the_round_is_read_from_the_config_or_the_group() -> None:
    assert find_round_number(make_request()) == 3
    assert find_round_number(Message(RecordDict(), 1, "train", group_id="12")) == 12
    with pytest.raises(DataError, match="names no round"):
        find_round_number(Message(RecordDict({"config": ConfigRecord({"server-round": "x"})}), 1, "train"))


def test_every_action_of_training_is_training() -> None:
    assert [is_training(make_request(kind)) for kind in ("train", "train.fast", "evaluate", "query")] == [
        *(True, True),
        *(False, False),
    ]


class Tied(SmallNet):
    def __init__(self) -> None:
        super().__init__()
        self.again = self.head


@pytest.mark.parametrize(
    "changes",
    [{"local": LocalTraining()}, {"sends": "gradient"}, {"classes": 4}, {"shape": (3, 10, 10)}, {"mean": (0.1, 0.2)}],
)
def test_a_description_that_does_not_fit_is_refused_at_once(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        describe(**changes)


def test_a_parameter_under_two_names_is_refused() -> None:
    usable = describe()
    with pytest.raises(SettingsError, match="two names"):
        type(usable)(Tied(), usable.shape, usable.classes, usable.mean, usable.std, usable.local)


def test_several_array_records_are_refused() -> None:
    request = make_request()
    request.content["more"] = ArrayRecord(make_net().state_dict())
    with pytest.raises(DataError, match="2 ArrayRecords"):
        describe().read_sent(request)
