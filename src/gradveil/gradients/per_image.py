"""The gradient of every single image of a batch, parameter by parameter, in the fastest way that a model allows."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from gradveil.errors import SettingsError
from gradveil.gradients.batch_norm import freeze_batch_norm
from gradveil.gradients.functional import gradients_apart
from gradveil.gradients.layers import Layer, find_layers
from gradveil.losses import Loss
from gradveil.machine import lay_out

TOLERANCE = 1e-3
Hook = Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]


class PerImageGradients(ABC):
    """Gradients of the loss of single images, with batch normalisation and dropout as in evaluation."""

    @abstractmethod
    def walk(self, images: Tensor, labels: Tensor) -> Iterator[Tensor]:
        """Yield one tensor of shape N×anything for each parameter tensor of the model.

        The order of the parameters, and of the entries within one, is the same at every call but otherwise free.
        """


class Vectorised(PerImageGradients):
    """Let torch vectorise: for every model that `torch.func.vmap` takes."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        self.loss = loss
        self.model = freeze_batch_norm(copy.deepcopy(model).eval())

    def walk(self, images: Tensor, labels: Tensor) -> Iterator[Tensor]:
        tensors = gradients_apart(self.model, self.loss, images.unsqueeze(1), labels.unsqueeze(1))
        return (tensor.flatten(1) for tensor in tensors.values())


class OneByOne(PerImageGradients):
    """One backward pass for each image: slow, but every model has one."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        self.loss = loss
        self.model = copy.deepcopy(model).eval()

    def walk(self, images: Tensor, labels: Tensor) -> Iterator[Tensor]:
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        rows = []
        for place in range(len(images)):
            loss = self.loss(self.model(images[place : place + 1]), labels[place : place + 1])
            rows.append(torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True))
        return (torch.stack(tensors).flatten(1) for tensors in zip(*rows, strict=True))


class LayerByLayer(PerImageGradients):
    """One pass for the whole batch, then each layer's gradients from its inputs and the slopes at its outputs."""

    def __init__(self, model: nn.Module, loss: Loss, image: Tensor) -> None:
        if not all(parameter.requires_grad for parameter in model.parameters()):
            raise NotImplementedError("a model of which some parameters stand still")
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.loss = loss
        self.layers = find_layers(self.model, image)
        channels, height, width = image.shape[1:]
        self.layout = lay_out(self.model, (channels, height, width))

    def walk(self, images: Tensor, labels: Tensor) -> Iterator[Tensor]:
        seen: dict[Layer, tuple[Tensor, Tensor]] = {}
        handles = [layer.module.register_forward_hook(watch(layer, seen)) for layer in self.layers]
        try:
            with torch.enable_grad():
                logits = self.model(images.detach().contiguous(memory_format=self.layout))
                loss = self.loss.per_image(logits, labels).sum()
        finally:
            for handle in handles:
                handle.remove()
        slopes = torch.autograd.grad(loss, [output for _, output in seen.values()])
        for (layer, (inputs, _)), slope in zip(seen.items(), slopes, strict=True):
            yield from layer.gradients(inputs, slope)


def watch(layer: Layer, seen: dict[Layer, tuple[Tensor, Tensor]]) -> Hook:
    """Make the hook that keeps what goes into a layer and what comes out."""

    def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG001
        if layer in seen:
            raise NotImplementedError("a layer that is used twice")
        if not output.requires_grad:  # the first layer: nothing before it needs a slope
            output.requires_grad_()
        seen[layer] = (inputs[0].detach(), output)

    return keep


def choose_gradients(model: nn.Module, loss: Loss, images: Tensor, labels: Tensor) -> PerImageGradients:
    """Choose the fastest way that computes the model's true gradient at a first image."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise SettingsError("a model none of whose parameters is trained has no gradient: let one require it")
    image, label = images[:1], labels[:1]
    true = square_length(OneByOne(model, loss).walk(image, label))
    ways: tuple[Callable[[], PerImageGradients], ...] = (
        lambda: LayerByLayer(model, loss, image),
        lambda: Vectorised(model, loss),
    )
    for way in ways:
        try:
            chosen = way()
            length = square_length(chosen.walk(image, label))
        except (RuntimeError, NotImplementedError):
            continue
        if abs(length - true) <= TOLERANCE * true:
            return chosen
    return OneByOne(model, loss)


def square_length(gradients: Iterable[Tensor]) -> float:
    return sum(float(part.double().square().sum()) for part in gradients)
