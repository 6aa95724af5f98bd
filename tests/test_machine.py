"""Devices, threads, and the layout of models in memory."""

import contextlib
import platform
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil import models
from gradveil.errors import SettingsError
from gradveil.machine import find_device, has_faulty_layer, keep_memory, lay_out, release_memory, threads
from gradveil.rng import generator

SHAPE = (3, 32, 32)
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.2, 0.3)
TRUSTED = ("lenet-relu", "convnet-4", "resnet20-1", "resnet18-w8", "vit-tiny")


class Viewing(nn.Module):
    """The way the original LeNet of DLG flattens: a view, which needs contiguous features."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 5, 2, padding=2), nn.BatchNorm2d(8), nn.Sigmoid())
        self.head = nn.Linear(8 * 16 * 16, 10)

    def forward(self, images: Tensor) -> Tensor:
        features = self.body(images)
        logits: Tensor = self.head(features.view(features.shape[0], -1))
        return logits


class BackwardOnly(nn.Module):
    """Runs forward in any layout, but its derivative asks for a contiguous one."""

    class Flatten(torch.autograd.Function):
        @staticmethod
        def forward(context: torch.autograd.function.FunctionCtx, images: Tensor) -> Tensor:
            context.save_for_backward(images)
            return images.reshape(len(images), -1)

        @staticmethod
        def backward(context: torch.autograd.function.FunctionCtx, gradient: Tensor) -> Tensor:
            (images,) = context.saved_tensors  # type: ignore[attr-defined]
            images.view(-1)
            return gradient.reshape(images.shape)

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3)
        self.head = nn.Linear(8 * 30 * 30, 10)

    def forward(self, images: Tensor) -> Tensor:
        flat = self.Flatten.apply(self.body(images))  # type: ignore[no-untyped-call]
        logits: Tensor = self.head(flat)
        return logits


class Functional(nn.Module):
    """Uses its kernel by hand, so nobody sees the stride."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.rand(8, channels, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        return F.conv2d(images, self.kernel, stride=2).mean((2, 3))


def build(name: str) -> nn.Module:
    return models.build(name, SHAPE, 10, MEAN, STD, generator(0, "model"))


def is_channels_last(model: nn.Module) -> bool:
    kernels = [each for each in model.parameters() if each.dim() == 4 and min(each.shape[1:]) > 1]
    return all(each.is_contiguous(memory_format=torch.channels_last) for each in kernels)


@pytest.mark.parametrize("name", TRUSTED)
def test_our_models_are_laid_out_channels_last(name: str) -> None:
    model = build(name)
    assert lay_out(model, SHAPE) == torch.channels_last
    assert is_channels_last(model)


@pytest.mark.parametrize("name", TRUSTED)
def test_the_layout_can_be_declined(name: str) -> None:
    model = build(name)
    assert lay_out(model, SHAPE, channels_last=False) == torch.contiguous_format
    assert all(parameter.is_contiguous() for parameter in model.parameters())


@pytest.mark.parametrize("make", [Viewing, BackwardOnly])
def test_a_model_that_needs_contiguous_features_falls_back(make: Callable[[], nn.Module]) -> None:
    model = make()
    assert lay_out(model, SHAPE) == torch.contiguous_format
    assert all(parameter.is_contiguous() for parameter in model.parameters())
    images = torch.rand(2, *SHAPE, requires_grad=True)
    model(images).sum().backward()
    assert images.grad is not None


@pytest.mark.parametrize("width", [2, 3, 4, 7])
def test_a_narrow_strided_shortcut_is_never_laid_out_channels_last(width: int) -> None:
    """OneDNN's backward pass writes outside its memory there."""
    model = build(f"resnet18-w{width}")
    assert has_faulty_layer(model)
    assert lay_out(model, SHAPE) == torch.contiguous_format


@pytest.mark.parametrize(
    ("layer", "faulty"),
    [
        (nn.Conv2d(4, 8, 1, stride=2), True),
        (nn.Conv2d(4, 8, 1, stride=(1, 2)), True),
        (nn.Conv2d(7, 8, 1, stride=2, bias=False), True),
        (nn.Conv2d(8, 8, 1, stride=2), False),
        (nn.Conv2d(1, 8, 1, stride=2), False),
        (nn.Conv2d(4, 8, 1), False),
        (nn.Conv2d(4, 8, 3, stride=2), False),
        (nn.Conv2d(8, 8, 1, stride=2, groups=2), True),
        (Functional(4), True),
        (Functional(8), False),
    ],
)
def test_which_layers_are_faulty(layer: nn.Module, faulty: bool) -> None:
    assert has_faulty_layer(nn.Sequential(layer)) == faulty


@pytest.mark.parametrize("make", [Viewing, lambda: build("resnet20-1")])
@pytest.mark.parametrize("training", [True, False])
def test_the_trial_leaves_no_trace(make: Callable[[], nn.Module], training: bool) -> None:
    model = nn.Sequential(make(), nn.Dropout(0.5)).train(training)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    lay_out(model, SHAPE)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(module.training == training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_gradient_is_the_same_in_both_layouts() -> None:
    images = torch.rand(4, *SHAPE, generator=generator(0, "images"))
    gradients = []
    for channels_last in (True, False):
        model = build("resnet20-1").eval()
        layout = lay_out(model, SHAPE, channels_last)
        loss = model(images.contiguous(memory_format=layout)).logsumexp(1).mean()
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_model_without_parameters_stays_as_it_is() -> None:
    assert lay_out(nn.Flatten(), SHAPE) == torch.contiguous_format


def test_a_model_in_double_precision_is_tried_as_such() -> None:
    assert lay_out(build("resnet20-1").double(), SHAPE) == torch.channels_last


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with contextlib.suppress(ValueError), threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise ValueError
    assert torch.get_num_threads() == before


def test_devices() -> None:
    assert find_device("cpu").type == "cpu"
    assert find_device("auto").type in ("cpu", "cuda")
    with pytest.raises(SettingsError, match="choose auto"):
        find_device("abacus")


def held_megabytes() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library has no such call")
def test_freed_memory_between_kept_results_is_given_back() -> None:
    """A hundred megabytes in pieces, each beside a small tensor that stays."""
    pairs = [(torch.zeros(16_000), torch.zeros(4)) for _ in range(1600)]
    small = [one for _, one in pairs]
    before = held_megabytes()
    del pairs
    release_memory()
    assert held_megabytes() < before - 50
    assert len(small) == 1600


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep memory")
def test_memory_is_kept_for_the_next_tensor_and_given_back_when_asked() -> None:
    """A tensor of 32 megabytes takes 8,192 pages; twenty of them do not take twenty times as many."""
    keep_memory()
    torch.zeros(8_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.zeros(8_000_000).add_(1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 5 * 8192
    held = held_megabytes()
    release_memory()
    assert held_megabytes() < held - 16
