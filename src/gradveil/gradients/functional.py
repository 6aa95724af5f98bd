"""Gradients as functions of parameters and images; the model itself is never changed."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

Tensors = dict[str, Tensor]
"""Tensors by the name of their parameter."""
LossFunction = Callable[[Tensor, Tensor], Tensor]
"""Takes logits and labels, returns the mean loss of the batch."""


def parameters_of(model: nn.Module) -> Tensors:
    """Return the trainable parameters by name, detached."""
    return {name: tensor.detach() for name, tensor in model.named_parameters() if tensor.requires_grad}


def loss_of_parameters(model: nn.Module, loss: LossFunction) -> Callable[[Tensors, Tensor, Tensor], Tensor]:
    """Make the training loss a function of parameters, images and labels."""

    def evaluate(parameters: Tensors, images: Tensor, labels: Tensor) -> Tensor:
        # Clones, because a batch normalisation in training mode writes to its buffers.
        buffers = {name: tensor.clone() for name, tensor in model.named_buffers()}
        return loss(functional_call(model, (parameters, buffers), (images,)), labels)

    return evaluate


def gradient(model: nn.Module, loss: LossFunction, images: Tensor, labels: Tensor) -> Tensors:
    """Take the gradient of the loss with respect to every parameter; differentiable in the images."""
    return dict(grad(loss_of_parameters(model, loss))(parameters_of(model), images, labels))


def gradients_apart(model: nn.Module, loss: LossFunction, images: Tensor, labels: Tensor) -> Tensors:
    """Take one gradient for each of T groups of images, T×B×C×H×W: every tensor gets a leading T."""
    per_group = vmap(grad(loss_of_parameters(model, loss)), in_dims=(None, 0, 0), randomness="different")
    return dict(per_group(parameters_of(model), images, labels))
