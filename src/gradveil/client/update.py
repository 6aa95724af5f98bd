"""The client: the only code that turns images into an update."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradveil.client.optimisers import make_optimiser
from gradveil.defences import Defence, compute_defended, defend_batch, defend_release, has_hook
from gradveil.errors import SettingsError
from gradveil.gradients import Tensors
from gradveil.rng import global_state_from, split
from gradveil.types import ONE_GRADIENT, Batch, LocalTraining, Update

Weights = Mapping[str, Tensor]
"""The parameters and buffers of a model, by name."""


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a client: the batch as the model was fed it, at `places` among its images, and the model's answer."""

    fed: Batch
    places: Tensor
    logits: Tensor
    mean_loss: Tensor

    @property
    def loss(self) -> float:
        """The mean loss; 0 of no images."""
        return float(self.mean_loss) if len(self.fed) else 0.0

    @property
    def correct(self) -> int:
        """The number of images that the model named correctly."""
        return int((self.logits.argmax(1) == self.fed.labels.to(self.logits.device)).sum()) if len(self.fed) else 0


class Client:
    """A participant: a model to work with, and the way it works.

    It works in `model` itself, which is left with the last weights that it had. `others` are images of the client that
    are not part of the round; a defence that mixes images takes from them what a small batch lacks. Without them it
    mixes within the batch.
    """

    def __init__(
        self,
        model: nn.Module,
        local: LocalTraining = ONE_GRADIENT,
        others: Batch | None = None,
        layout: torch.memory_format = torch.contiguous_format,
    ) -> None:
        self.model, self.local, self.others, self.layout = model, local, others, layout
        self.device = next(model.parameters()).device

    def update(
        self,
        weights: Weights,
        batch: Batch,
        defences: Sequence[Defence],
        generator: torch.Generator,
        *,
        share_labels: bool = True,
        watch: Callable[[Step], None] | None = None,
    ) -> Update:
        """Compute exactly what leaves this client when it is sent `weights` and has the images of `batch`.

        The defences' batch and compute hooks act at every step, their release hooks on the update. `watch` sees every
        step; it is for whoever may know the truth.
        """
        self.check(batch)
        self.load(weights)
        work = self.take_steps if self.local.takes_steps else self.take_gradient
        tensors, labels, releasing = work(batch, defences, generator, watch or ignore)
        update = Update(tensors, max(1, len(batch)), self.local, labels if share_labels else None, self.buffers())
        return defend_release(defences, update, releasing)

    def check(self, batch: Batch) -> None:
        """Refuse local batches that the images do not fill."""
        size = self.local.size_of(len(batch))
        if self.local.takes_steps and size > len(batch):
            raise SettingsError(f"local batches of {size} from {len(batch)} images: at most {len(batch)}")

    def load(self, weights: Weights) -> None:
        """Put weights and buffers into the model; those that are its own already cost nothing."""
        own = self.model.state_dict()
        if weights.keys() != own.keys():
            raise SettingsError(
                f"the weights name {sorted(weights.keys() ^ own.keys())[:3]} and the model does not, or the other way "
                "round: send the state dict of this model"
            )
        for name, tensor in own.items():
            if weights[name].data_ptr() != tensor.data_ptr():
                tensor.copy_(weights[name])

    def take_gradient(
        self,
        batch: Batch,
        defences: Sequence[Defence],
        generator: torch.Generator,
        watch: Callable[[Step], None],
    ) -> tuple[Tensors, Tensor, torch.Generator]:
        """Take one gradient of all images."""
        fed = self.feed(batch, defences, generator)
        computing, releasing = split(generator, 2)
        tensors, step = self.gradient(fed, torch.arange(len(batch)), defences, computing)
        watch(step)
        return tensors, fed.labels.to(self.device), releasing

    def take_steps(
        self,
        batch: Batch,
        defences: Sequence[Defence],
        generator: torch.Generator,
        watch: Callable[[Step], None],
    ) -> tuple[Tensors, Tensor, torch.Generator]:
        """Train for the local steps or epochs and take the change of the weights."""
        ordering, computing, releasing = split(generator, 3)
        trained = {name: parameter for name, parameter in self.model.named_parameters() if parameter.requires_grad}
        before = {name: parameter.detach().clone() for name, parameter in trained.items()}
        optimiser = make_optimiser(self.model, self.local)
        labels = batch.labels.clone()
        seen = torch.zeros(len(batch), dtype=torch.bool)
        private = any(defence.poisson for defence in defences)
        for places in draw_batches(self.local, len(batch), private, ordering):
            fed = self.feed(batch.take(places), defences, generator)
            slopes, step = self.gradient(fed, places, defences, computing)
            for name, parameter in trained.items():
                parameter.grad = slopes[name]
            optimiser.step()
            new = ~seen[places]
            labels[places[new]] = fed.labels.cpu()[new]
            seen[places] = True
            watch(step)
        for parameter in trained.values():
            parameter.grad = None
        change = {name: parameter.detach() - before[name] for name, parameter in trained.items()}
        return change, labels.to(self.device), releasing

    def feed(self, batch: Batch, defences: Sequence[Defence], generator: torch.Generator) -> Batch:
        """Let the defences change images; a batch too small to be mixed within itself is mixed with other images."""
        companions = max((defence.companions for defence in defences), default=0)
        if self.others is None or len(batch) > companions:
            return defend_batch(defences, batch, generator)
        chosen = self.others.take(torch.randperm(len(self.others), generator=generator)[:companions])
        whole = Batch(torch.cat([batch.images, chosen.images]), torch.cat([batch.labels, chosen.labels]))
        return defend_batch(defences, whole, generator).take(slice(0, len(batch)))

    def gradient(
        self, fed: Batch, places: Tensor, defences: Sequence[Defence], generator: torch.Generator
    ) -> tuple[Tensors, Step]:
        """Take the gradient of what the model is fed, with the defences' compute hooks; of no images, it may be 0."""
        self.model.train(self.local.mode == "train")
        there = fed.to(self.device)
        pixels = there.pixels().contiguous(memory_format=self.layout)
        computes = has_hook(defences, "compute")
        with global_state_from(generator):
            with torch.set_grad_enabled(not computes):
                # A defence that computes the gradient itself changes no buffers: this pass updates them all the same.
                logits = self.model(pixels)
                loss = self.local.loss(logits, there.labels)
            if computes:
                tensors = compute_defended(defences)(self.model, self.local.loss, there, generator)
                tensors = self.divide_by_expected(tensors, len(fed), defences)
            else:
                tensors = self.differentiate(loss)
        return tensors, Step(fed, places, logits.detach(), loss.detach())

    def differentiate(self, loss: Tensor) -> Tensors:
        names, parameters = zip(*((n, p) for n, p in self.model.named_parameters() if p.requires_grad), strict=True)
        slopes = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
        return dict(zip(names, slopes, strict=True))

    def divide_by_expected(self, tensors: Tensors, images: int, defences: Sequence[Defence]) -> Tensors:
        """Under independent draws the number of images is itself private: divide by how many are expected."""
        if self.local.batch_size is None or not any(defence.poisson for defence in defences):
            return tensors
        share = max(1, images) / self.local.batch_size
        return {name: share * tensor for name, tensor in tensors.items()}

    def buffers(self) -> Tensors | None:
        """Copy the buffers that a state dict carries; None if there are none."""
        # A tied parameter has a second name in the state dict: what counts is what the model registered as a buffer.
        registered = dict(self.model.named_buffers())
        state = self.model.state_dict()
        return {name: tensor.detach().clone() for name, tensor in state.items() if name in registered} or None


def ignore(step: Step) -> None:
    """Watch nothing."""


def draw_batches(local: LocalTraining, images: int, private: bool, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield the places of the images of every local step; with `private` each image is drawn independently."""
    size = local.size_of(images)
    if private:
        for _ in range(local.count_steps(images)):
            yield (torch.rand(images, generator=generator) < size / images).nonzero().squeeze(1)
        return
    if local.epochs is not None:
        for _ in range(local.epochs):
            yield from torch.split(next_order(local, images, generator), size)
        return
    waiting = torch.empty(0, dtype=torch.int64)
    for _ in range(local.steps or 0):
        while len(waiting) < size:
            waiting = torch.cat([waiting, next_order(local, images, generator)])
        yield waiting[:size]
        waiting = waiting[size:]


def next_order(local: LocalTraining, images: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(images, generator=generator) if local.shuffle else torch.arange(images)
