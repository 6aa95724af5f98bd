"""DP-SGD: per-sample gradients, the mechanism and its model, against Opacus and first principles."""

import warnings
from dataclasses import replace

import pytest
import torch
from opacus import GradSampleModule
from opacus.accountants import RDPAccountant
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from gradveil import data
from gradveil.client import Client
from gradveil.defences import DPSGD, defend_model, list_edits, parse_arm
from gradveil.defences import dpsgd as mechanism
from gradveil.defences.dpsgd import clipped_sum, single_gradients
from gradveil.gradients import Tensors
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import FAST, train
from gradveil.types import Batch

NAMES = ["lenet", "mlp", "convnet-1", "resnet20-1"]


def build(name: str) -> nn.Module:
    spec = ModelSpec(name, (1, 12, 12), 4, (0.5,), (0.5,))
    return DPSGD(1, 1).model(spec.build(generator(0)), generator(0))


def batch(count: int = 5) -> Batch:
    return Batch(torch.rand(count, 1, 12, 12, generator=generator(1)), torch.arange(count) % 4)


def together(parts: list[Tensors]) -> Tensors:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def by_torch_func(model: nn.Module, fed: Batch) -> Tensors:
    parameters = {name: tensor.detach() for name, tensor in model.named_parameters()}

    def loss(values: Tensors, image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(functional_call(model, values, (image[None],)), label[None])

    return dict(vmap(grad(loss), in_dims=(None, 0, 0))(parameters, fed.images, fed.labels))


@pytest.mark.parametrize("name", NAMES)
def test_single_gradients_equal_those_of_torch_func(name: str) -> None:
    model = build(name)
    found = together(list(single_gradients(model, CrossEntropy(), batch())))
    for key, tensor in by_torch_func(model, batch()).items():
        torch.testing.assert_close(found[key], tensor, rtol=1e-4, atol=1e-6)


def test_single_gradients_equal_those_of_opacus() -> None:
    model = build("convnet-1")
    found = together(list(single_gradients(model, CrossEntropy(), batch())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = GradSampleModule(build("convnet-1"), loss_reduction="sum")
        F.cross_entropy(wrapped(batch().pixels()), batch().labels, reduction="sum").backward()  # type: ignore[no-untyped-call]
    for key, parameter in wrapped._module.named_parameters():
        torch.testing.assert_close(found[key], parameter.grad_sample, rtol=1e-3, atol=1e-5)


def test_little_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("mlp")
    whole = list(single_gradients(model, CrossEntropy(), batch()))
    monkeypatch.setattr(mechanism, "ENTRIES", 1)
    parts = list(single_gradients(model, CrossEntropy(), batch()))
    assert (len(whole), len(parts)) == (1, 5)
    for key, tensor in together(parts).items():
        torch.testing.assert_close(tensor, whole[0][key])


def test_every_image_is_clipped_alone() -> None:
    gradients = {"first": torch.tensor([[3.0, 0.0], [0.3, 0.0]]), "second": torch.tensor([[4.0], [0.4]])}
    total = clipped_sum(gradients, 1.0)
    torch.testing.assert_close(total["first"], torch.tensor([0.6 + 0.3, 0.0]))
    torch.testing.assert_close(total["second"], torch.tensor([0.8 + 0.4]))


def test_no_image_moves_the_sum_by_more_than_the_clip() -> None:
    model, fed = build("mlp"), batch()
    defence = DPSGD(0, 0.1)
    whole = defence.noised_mean(model, CrossEntropy(), fed, generator(0))
    without = defence.noised_mean(model, CrossEntropy(), Batch(fed.images[1:], fed.labels[1:]), generator(0))
    moved = [5 * whole[name] - 4 * without[name] for name in whole]
    assert float(torch.cat([tensor.flatten() for tensor in moved]).norm()) <= 0.1 * 1.001


def test_the_noise_is_that_of_the_sum() -> None:
    model = build("mlp")
    released, clean = (
        DPSGD(noise, 0.5).noised_mean(model, CrossEntropy(), batch(), generator(0)) for noise in (2.0, 0.0)
    )
    noise = torch.cat([(released[name] - clean[name]).flatten() for name in clean])
    assert float(noise.std()) == pytest.approx(2.0 * 0.5 / 5, rel=0.01)


def test_of_no_images_the_noise_alone_is_released() -> None:
    none = Batch(torch.zeros(0, 1, 12, 12), torch.zeros(0, dtype=torch.int64))
    released = DPSGD(2, 0.5).noised_mean(build("mlp"), CrossEntropy(), none, generator(0))
    assert float(released["body.1.weight"].std()) == pytest.approx(1, rel=0.02)


def test_batch_normalisation_is_replaced_and_the_edit_named() -> None:
    plain = ModelSpec("convnet-1", (1, 12, 12), 4, (0.5,), (0.5,)).build(generator(0))
    edited = defend_model(parse_arm("dpsgd:noise=1:clip=1").defences, plain, generator(0))
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in edited.modules())
    assert list_edits(plain, edited) == ("BatchNorm2d → GroupNorm: body.1, body.4, body.7 and 5 more",)
    assert [name for name, _ in edited.named_parameters()] == [name for name, _ in plain.named_parameters()]


def test_an_image_does_not_touch_the_features_of_another() -> None:
    model = build("convnet-1").train()
    alone = model(batch(1).pixels())
    torch.testing.assert_close(model(batch(5).pixels())[:1], alone)


def test_training_states_the_epsilon_of_its_own_steps() -> None:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(45)
    little = replace(sample, train=sample.train.take(some), test=sample.test.take(some[:10]))
    spec = ModelSpec("mlp", sample.shape, sample.classes, sample.mean, sample.std)
    defences = parse_arm("dpsgd:noise=0.8:clip=1:delta=1e-3").defences
    model = defend_model(defences, spec.build(generator(0)), generator(0))
    settings = replace(FAST, epochs=2, batch_size=10, learning_rate=0.01, threads=1)
    result = train(model, little, settings, defences=defences, seed=0)
    accountant = RDPAccountant()
    for _ in range(8):
        accountant.step(noise_multiplier=0.8, sample_rate=10 / 45)
    assert result.guarantee is not None
    assert (result.guarantee.steps, result.guarantee.rate) == (8, 10 / 45)
    assert result.guarantee.epsilon == pytest.approx(accountant.get_epsilon(1e-3), rel=1e-12)


def test_a_client_of_one_image_releases_its_clipped_and_noised_gradient() -> None:
    model = build("mlp").eval()
    one = Batch(batch(1).images, batch(1).labels)
    quiet = Client(model).update(model.state_dict(), one, [DPSGD(0, 0.01)], generator(0))
    assert float(torch.cat([tensor.flatten() for tensor in quiet.tensors.values()]).norm()) == pytest.approx(0.01)


@pytest.mark.parametrize("others", ["policy:3-1-7+43-18-18", "mixup", "instahide", "precode:width=4", "soteria:40"])
def test_a_step_in_which_no_image_is_drawn_is_taken_all_the_same(others: str) -> None:
    """Of 12 steps that expect one image each, some draw none."""
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(12)
    little = replace(sample, train=sample.train.take(some), test=sample.test.take(some))
    spec = ModelSpec("lenet", sample.shape, sample.classes, sample.mean, sample.std)
    first = "dpsgd:noise=0.5:clip=1"
    arm = f"{first},{others}" if others.startswith("soteria") else f"{others},{first}"
    defences = parse_arm(f"{arm},prune:10").defences
    model = defend_model(defences, spec.build(generator(0)), generator(0))
    settings = replace(FAST, epochs=1, batch_size=1, learning_rate=0.01, threads=1)
    result = train(model, little, settings, defences=defences, seed=0)
    assert all(torch.isfinite(tensor).all() for tensor in result.snapshots["final"].values())
    assert result.curves[0].train_accuracy <= 1
