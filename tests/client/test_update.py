"""The client: exactly what leaves it, whatever the way it works."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from gradveil.client import Client, Step
from gradveil.client.update import draw_batches
from gradveil.defences import Defence, Hook, parse_arm
from gradveil.errors import SettingsError
from gradveil.losses import CrossEntropy
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import ONE_GRADIENT, Batch, LocalTraining, Update

MOMENTUM = LocalTraining(steps=3, batch_size=2, momentum=0.9, nesterov=True, weight_decay=1e-2)


def network(name: str = "lenet-relu") -> nn.Module:
    return build(name, (1, 12, 12), 4, (0.5,), (0.5,), generator(0))


def batch(count: int = 4) -> Batch:
    return Batch(torch.rand(count, 1, 12, 12, generator=generator(1)), torch.arange(count) % 4)


def release(
    local: LocalTraining, *defences: Defence, model: nn.Module | None = None, images: Batch | None = None, seed: int = 0
) -> Update:
    model = model or network()
    weights = copy.deepcopy(model.state_dict())
    return Client(model, local).update(weights, images or batch(), defences, generator(seed))


def by_torch(local: LocalTraining, places: Sequence[Sequence[int]], optimiser: type[torch.optim.Optimizer]) -> Update:
    """Train with torch alone, over batches of these places."""
    model, images = network(), batch()
    before = copy.deepcopy(model.state_dict())
    options: dict[str, Any] = {"lr": local.learning_rate, "weight_decay": local.weight_decay}
    if optimiser is torch.optim.SGD:
        options |= {"momentum": local.momentum, "nesterov": local.nesterov}
    steps = optimiser(model.parameters(), **options)
    for chosen in places:
        steps.zero_grad()
        loss = nn.CrossEntropyLoss(label_smoothing=0.1)(model(images.images[chosen]), images.labels[chosen])
        loss.backward()
        steps.step()
    return Update({name: value - before[name] for name, value in model.state_dict().items()}, len(images))


def assert_equal(ours: Update, theirs: Update) -> None:
    assert ours.tensors.keys() == theirs.tensors.keys()
    for name, tensor in theirs.tensors.items():
        torch.testing.assert_close(ours.tensors[name], tensor, rtol=1e-4, atol=1e-7)


def test_one_gradient_is_what_autograd_gives() -> None:
    model, images = network(), batch()
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)(model(images.images), images.labels)
    expected = torch.autograd.grad(loss, list(model.parameters()))
    update = release(LocalTraining(loss=CrossEntropy(0.1)))
    for (name, _), slope in zip(model.named_parameters(), expected, strict=True):
        torch.testing.assert_close(update.tensors[name], slope)


@pytest.mark.parametrize(
    ("local", "places", "optimiser"),
    [
        (LocalTraining(steps=3, batch_size=2), [[0, 1], [2, 3], [0, 1]], torch.optim.SGD),
        (LocalTraining(steps=2, batch_size=3), [[0, 1, 2], [3, 0, 1]], torch.optim.SGD),
        (MOMENTUM, [[0, 1], [2, 3], [0, 1]], torch.optim.SGD),
        (LocalTraining(epochs=2, batch_size=3), [[0, 1, 2], [3], [0, 1, 2], [3]], torch.optim.SGD),
        (LocalTraining(steps=2, optimiser="adam", learning_rate=1e-3), [[0, 1, 2, 3]] * 2, torch.optim.Adam),
    ],
    ids=["steps", "wrapping", "momentum", "epochs", "adam"],
)
def test_local_steps_are_those_of_torch(
    local: LocalTraining, places: list[list[int]], optimiser: type[torch.optim.Optimizer]
) -> None:
    local = replace(local, loss=CrossEntropy(0.1))
    assert_equal(release(local), by_torch(local, places, optimiser))


def test_shuffled_epochs_use_every_image_once() -> None:
    local = LocalTraining(epochs=3, batch_size=3, shuffle=True)
    places = list(draw_batches(local, 7, False, generator(0)))
    assert [len(part) for part in places] == [3, 3, 1] * 3
    passes = [torch.cat(places[start : start + 3]) for start in (0, 3, 6)]
    assert all(sorted(order.tolist()) == list(range(7)) for order in passes)
    assert not torch.equal(passes[0], passes[1])


def test_shuffled_steps_go_round_and_round() -> None:
    local = LocalTraining(steps=6, batch_size=2, shuffle=True)
    places = torch.cat(list(draw_batches(local, 4, False, generator(0))))
    assert all(sorted(part.tolist()) == [0, 1, 2, 3] for part in torch.split(places, 4))


def test_under_dpsgd_every_image_is_drawn_independently() -> None:
    places = list(draw_batches(LocalTraining(steps=400, batch_size=5), 20, True, generator(0)))
    sizes = torch.tensor([len(part) for part in places]).double()
    assert float(sizes.mean()) == pytest.approx(5, abs=0.4)
    assert float(sizes.var()) == pytest.approx(20 * 0.25 * 0.75, rel=0.25)


def test_the_private_number_of_images_does_not_scale_the_noise() -> None:
    """The sum is divided by how many images are expected, not by how many were drawn."""
    defences = parse_arm("dpsgd:noise=0:clip=1e9,no-base").defences
    expected = release(ONE_GRADIENT, *defences).tensors
    halved = release(LocalTraining(batch_size=8), *defences).tensors
    for name, tensor in expected.items():
        torch.testing.assert_close(halved[name], tensor / 2)


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("local", [ONE_GRADIENT, LocalTraining(steps=2)])
def test_buffers_are_those_a_state_dict_would_carry(mode: str, local: LocalTraining) -> None:
    model = network("convnet-2")
    before = copy.deepcopy(model.state_dict())
    update = release(replace(local, mode=mode), model=model)  # type: ignore[arg-type]
    assert update.buffers is not None
    parameters = dict(model.named_parameters())
    assert set(update.buffers) == set(before) - set(parameters)
    moved = any(not torch.equal(tensor, before[name]) for name, tensor in update.buffers.items())
    assert moved == (mode == "train")
    counts = [tensor for name, tensor in update.buffers.items() if name.endswith("num_batches_tracked")]
    assert all(tensor.dtype == torch.int64 for tensor in counts)


def test_a_tied_parameter_does_not_leave_as_a_buffer() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(144, 144), nn.Linear(144, 144), nn.Linear(144, 4))
    model.get_submodule("2").register_parameter("weight", model.get_parameter("1.weight"))
    assert release(ONE_GRADIENT, model=model).buffers is None


def test_a_model_without_buffers_sends_none() -> None:
    assert release(ONE_GRADIENT).buffers is None


def test_an_update_does_not_depend_on_the_one_before() -> None:
    model = network("convnet-2")
    sent = copy.deepcopy(model.state_dict())
    client = Client(model, LocalTraining(steps=2, mode="train"))
    first, second = (client.update(sent, batch(), (), generator(0)) for _ in range(2))
    assert all(torch.equal(tensor, second.tensors[name]) for name, tensor in first.tensors.items())
    assert not any(tensor.requires_grad for tensor in first.tensors.values())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_weights_of_another_model_are_refused() -> None:
    with pytest.raises(SettingsError, match="state dict of this model"):
        Client(network()).update(network("mlp").state_dict(), batch(), (), generator(0))


def test_local_batches_larger_than_the_batch_are_refused() -> None:
    with pytest.raises(SettingsError, match="at most 4"):
        release(LocalTraining(steps=1, batch_size=5))


def test_labels_are_shared_only_if_asked() -> None:
    model = network()
    hidden = Client(model).update(model.state_dict(), batch(), (), generator(0), share_labels=False)
    assert hidden.labels is None
    shared = Client(model).update(model.state_dict(), batch(), (), generator(0))
    assert shared.labels is not None
    assert shared.labels.tolist() == batch().labels.tolist()


def test_frozen_parameters_are_not_released() -> None:
    model = network()
    first = next(iter(dict(model.named_parameters())))
    model.get_parameter(first).requires_grad_(False)
    for local in (ONE_GRADIENT, LocalTraining(steps=2)):
        assert first not in release(local, model=model).tensors


@dataclass(frozen=True, repr=False)
class Recorder(Defence):
    """Count the calls of every hook, and leave everything as it is."""

    calls: ClassVar[list[str]] = []
    hooks: ClassVar[tuple[Hook, ...]] = ("batch", "release")

    def __str__(self) -> str:
        return "recorder"

    def batch(self, batch: Batch, generator: torch.Generator) -> Batch:  # noqa: ARG002
        self.calls.append(f"batch {len(batch)}")
        return batch

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        self.calls.append("release")
        return update


def test_batch_hooks_act_at_every_step_and_release_hooks_once() -> None:
    Recorder.calls.clear()
    release(LocalTraining(epochs=2, batch_size=3), Recorder())
    assert Recorder.calls == ["batch 3", "batch 1", "batch 3", "batch 1", "release"]
    Recorder.calls.clear()
    release(ONE_GRADIENT, Recorder())
    assert Recorder.calls == ["batch 4", "release"]


def test_compute_hooks_act_at_every_step() -> None:
    """With one image a step, clipping to a tiny norm bounds the whole weight change."""
    local = LocalTraining(steps=3, batch_size=1, learning_rate=1.0)
    defences = parse_arm("dpsgd:noise=0:clip=1e-3,no-base").defences
    model = network()
    change = Client(model, local).update(copy.deepcopy(model.state_dict()), batch(), defences, generator(0)).tensors
    assert 0 < float(torch.cat([tensor.flatten() for tensor in change.values()]).norm()) <= 3 * 4 * 1e-3


def test_whoever_may_watch_sees_what_was_fed() -> None:
    steps: list[Step] = []
    model, defences = network(), parse_arm("policy:3-1-7").defences
    images = Batch((batch().images * 255).to(torch.uint8), batch().labels)
    Client(model, LocalTraining(steps=2, batch_size=2)).update(
        model.state_dict(), images, defences, generator(0), watch=steps.append
    )
    assert [step.places.tolist() for step in steps] == [[0, 1], [2, 3]]
    assert not torch.equal(steps[0].fed.images, images.images[:2])
    assert all(step.loss > 0 and 0 <= step.correct <= 2 for step in steps)


def test_a_small_batch_is_mixed_with_other_images_of_the_client() -> None:
    others = Batch(torch.ones(20, 1, 12, 12), torch.full((20,), 3))
    dark = Batch(torch.zeros(1, 1, 12, 12), torch.tensor([0]))
    steps: list[Step] = []
    model = network()
    client = Client(model, ONE_GRADIENT, others)
    client.update(model.state_dict(), dark, parse_arm("mixup,no-base").defences, generator(0), watch=steps.append)
    assert len(steps[0].fed) == 1
    assert 0 < float(steps[0].fed.images.mean()) <= 0.5


def test_a_seed_decides_every_draw_and_global_state_is_left_alone() -> None:
    defences = parse_arm("policy:3-1-7,gaussian:0.1").defences
    local = LocalTraining(epochs=1, batch_size=2, shuffle=True)
    state = torch.random.get_rng_state()
    images = Batch((batch().images * 255).to(torch.uint8), batch().labels)
    same = [release(local, *defences, images=images, seed=5) for _ in range(2)]
    other = release(local, *defences, images=images, seed=6)
    assert all(torch.equal(tensor, same[1].tensors[name]) for name, tensor in same[0].tensors.items())
    assert any(not torch.equal(tensor, other.tensors[name]) for name, tensor in same[0].tensors.items())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_nothing_is_left_on_another_device() -> None:
    """The meta device stands for a GPU: a tensor that was not moved raises."""
    model = network("convnet-2").to("meta")
    images = Batch((batch().images * 255).to(torch.uint8), batch().labels)
    for local in (ONE_GRADIENT, LocalTraining(steps=2, batch_size=2, momentum=0.9, mode="train")):
        defences = parse_arm("policy:3-1-7,gaussian:0.1,laplacian:0.1,quantise:4,prune:50").defences
        update = Client(model, local).update(model.state_dict(), images, defences[:2], generator(0))
        tensors: list[Tensor] = [*update.tensors.values(), *(update.buffers or {}).values()]
        assert update.labels is not None
        assert {tensor.device.type for tensor in (*tensors, update.labels)} == {"meta"}
        for defence in defences[2:5]:
            changed = defence.release(update, generator(0))
            assert {tensor.device.type for tensor in changed.tensors.values()} == {"meta"}
