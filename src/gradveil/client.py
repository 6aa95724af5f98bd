"""The only code that turns images into an update; the client runs it, and so does the attacker."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from gradveil.errors import SettingsError
from gradveil.types import Batch, LocalSteps, Loss, Update

Tensors = dict[str, Tensor]


def parameters_of(model: nn.Module) -> Tensors:
    """Give the trainable parameters by name, detached."""
    return {name: tensor.detach() for name, tensor in model.named_parameters() if tensor.requires_grad}


def loss_of_parameters(model: nn.Module, loss: Loss) -> Callable[[Tensors, Tensor, Tensor], Tensor]:
    """Make the training loss a function of parameters, images and labels; the model itself is never changed."""

    def evaluate(parameters: Tensors, images: Tensor, labels: Tensor) -> Tensor:
        # Clones, because a batch normalisation in training mode writes to its buffers.
        buffers = {name: tensor.clone() for name, tensor in model.named_buffers()}
        return loss(functional_call(model, (parameters, buffers), (images,)), labels)

    return evaluate


def gradient(model: nn.Module, loss: Loss, images: Tensor, labels: Tensor) -> Tensors:
    """Take the gradient of the loss with respect to every parameter; differentiable in the images."""
    return dict(grad(loss_of_parameters(model, loss))(parameters_of(model), images, labels))


def gradients_apart(model: nn.Module, loss: Loss, images: Tensor, labels: Tensor) -> Tensors:
    """Take one gradient for each of T groups of images, T×B×C×H×W: every tensor gets a leading T."""
    per_group = vmap(grad(loss_of_parameters(model, loss)), in_dims=(None, 0, 0), randomness="different")
    return dict(per_group(parameters_of(model), images, labels))


def updates_apart(
    model: nn.Module, loss: Loss, images: Tensor, labels: Tensor, local: LocalSteps | None = None
) -> Tensors:
    """Compute what each of T clients would release for its images, T×B×C×H×W; differentiable in the images."""
    before = parameters_of(model)

    def release(ours: Tensor, theirs: Tensor) -> Tensors:
        if local is None:
            return gradient(model, loss, ours, theirs)
        return difference(local_weights(model, loss, ours, theirs, local), before)

    return dict(vmap(release, randomness="different")(images, labels))


def local_weights(model: nn.Module, loss: Loss, images: Tensor, labels: Tensor, local: LocalSteps) -> Tensors:
    """Run plain SGD steps over consecutive batches of the images, round and round; differentiable in the images."""
    step_gradient = grad(loss_of_parameters(model, loss))
    parameters = parameters_of(model)
    for step in range(local.steps):
        chosen = (torch.arange(local.batch_size) + step * local.batch_size) % images.shape[0]
        slopes = step_gradient(parameters, images[chosen], labels[chosen])
        parameters = {name: value - local.learning_rate * slopes[name] for name, value in parameters.items()}
    return parameters


def difference(after: Mapping[str, Tensor], before: Mapping[str, Tensor]) -> Tensors:
    return {name: value - before[name] for name, value in after.items()}


def local_update(
    model: nn.Module, loss: Loss, batch: Batch, local: LocalSteps | None = None, share_labels: bool = True
) -> Update:
    """Compute what a client would release for this batch: a gradient, or the weight change of several steps."""
    images = batch.pixels()
    if local is None:
        tensors = gradient(model, loss, images, batch.labels)
    elif local.batch_size > len(batch):
        raise SettingsError(f"local batches of {local.batch_size} from {len(batch)} images: at most {len(batch)}")
    else:
        tensors = difference(local_weights(model, loss, images, batch.labels, local), parameters_of(model))
    detached = {name: tensor.detach() for name, tensor in tensors.items()}
    return Update(detached, len(batch), local, batch.labels.clone() if share_labels else None)
