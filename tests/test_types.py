"""The values that pass between client, attacker and audit."""

import pytest
import torch

from gradveil.errors import SettingsError
from gradveil.losses import CrossEntropy
from gradveil.types import Batch, LocalTraining, Task, Update, to_pixels


def test_local_training_goes_through_json() -> None:
    local = LocalTraining(epochs=3, batch_size=4, momentum=0.9, loss=CrossEntropy(0.2), shuffle=True, mode="train")
    assert LocalTraining.from_record(local.to_record()) == local


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"steps": 1, "epochs": 1}, "give one of them"),
        ({"steps": 0}, "1 or more"),
        ({"epochs": -1}, "1 or more"),
        ({"batch_size": 0}, "1 or more"),
        ({"learning_rate": 0.0}, "above 0"),
        ({"learning_rate": float("nan")}, "above 0"),
        ({"momentum": 1.0}, "below 1"),
        ({"weight_decay": -1.0}, "0 or more"),
        ({"nesterov": True}, "momentum above 0"),
        ({"optimiser": "lion"}, "choose sgd"),
        ({"mode": "test"}, "choose train"),
    ],
)
def test_nonsense_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        LocalTraining(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("local", "images", "steps"),
    [
        (LocalTraining(), 8, 0),
        (LocalTraining(steps=5), 8, 5),
        (LocalTraining(epochs=2), 8, 2),
        (LocalTraining(epochs=2, batch_size=3), 8, 6),
    ],
)
def test_steps_are_counted(local: LocalTraining, images: int, steps: int) -> None:
    assert local.count_steps(images) == steps
    assert local.takes_steps == (steps > 0)


def test_images_become_pixels_once() -> None:
    images = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    assert to_pixels(images).tolist() == [[[[0.0, 1.0]]]]
    assert torch.equal(to_pixels(to_pixels(images)), to_pixels(images))


def test_a_batch_needs_a_label_for_each_image() -> None:
    with pytest.raises(SettingsError, match="N×C×H×W and N"):
        Batch(torch.zeros(2, 1, 3, 3), torch.zeros(3))


def test_an_update_is_of_some_image() -> None:
    with pytest.raises(SettingsError, match="at least 1"):
        Update({}, 0)


def test_everything_moves_to_a_device() -> None:
    """The meta device stands for a GPU."""
    batch = Batch(torch.zeros(2, 1, 3, 3), torch.zeros(2, dtype=torch.int64))
    update = Update({"w": torch.zeros(2)}, 1, labels=batch.labels, buffers={"b": torch.zeros(1)}).to("meta")
    task = Task(torch.nn.Linear(2, 2), CrossEntropy(), (1, 3, 3), 2, (0.5,), (0.5,), public=batch).to("meta")
    assert update.labels is not None
    assert update.buffers is not None
    assert task.public is not None
    tensors = [
        update.tensors["w"],
        update.labels,
        update.buffers["b"],
        task.public.images,
        next(task.model.parameters()),
    ]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert update.device.type == "meta"
