"""The centralised training loop: whole batches of tensors, every draw named by its step."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.data import DataSet, ImageSet
from gradveil.defences.base import Defence, defend_batch, defend_release
from gradveil.errors import SettingsError
from gradveil.rng import generator, global_state_from
from gradveil.training.phases import phase_steps
from gradveil.training.settings import TrainingSettings
from gradveil.types import Batch, Update, to_pixels

logger = logging.getLogger(__name__)

Weights = dict[str, Tensor]
TEST_BATCH = 500


@dataclass(frozen=True)
class Epoch:
    """One point of the curves; `test_accuracy` is None in an epoch that was not tested."""

    epoch: int
    train_loss: float
    train_accuracy: float
    test_accuracy: float | None
    learning_rate: float
    seconds: float


@dataclass(frozen=True)
class TrainingProgress:
    """How far training is, after each step; `latest` is the last finished epoch."""

    step: int
    steps: int
    epoch: int
    epochs: int
    images: int
    latest: Epoch | None


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The weights at the phases asked for, the curves, and the accuracy at the end."""

    snapshots: dict[str, Weights]
    curves: tuple[Epoch, ...]
    test_accuracy: float
    seconds: float


def train(
    model: nn.Module,
    data: DataSet,
    settings: TrainingSettings,
    *,
    defences: Sequence[Defence] = (),
    seed: int,
    phases: Sequence[str] = ("init", "final"),
    device: torch.device | str = "cpu",
    folder: Path | None = None,  # noqa: ARG001
    resume: bool = False,  # noqa: ARG001
    progress: Callable[[TrainingProgress], None] | None = None,
) -> TrainingResult:
    """Train `model` in place and keep its weights at the named phases; it ends in evaluation mode.

    The model hooks of the defences belong to whoever builds the model; here their batch and release hooks act.
    """
    with threads(settings.threads):
        run = Run(model.to(device), data, settings, tuple(defences), seed, torch.device(device))
        return run.finish(tuple(phases), progress)


class Run:
    """One training run under way."""

    def __init__(
        self,
        model: nn.Module,
        data: DataSet,
        settings: TrainingSettings,
        defences: Sequence[Defence],
        seed: int,
        device: torch.device,
    ) -> None:
        self.model = model
        self.images = take_fraction(data.train, settings.fraction, seed)
        self.test = data.test
        self.settings = settings
        self.defences = defences
        self.releases = any(type(defence).release is not Defence.release for defence in defences)
        self.seed = seed
        self.device = device
        self.batch_size = min(settings.batch_size, len(self.images))
        # Differs from the papers' code: an incomplete last batch is left out, so that every step weighs the same.
        self.steps_per_epoch = len(self.images) // self.batch_size
        self.steps = self.steps_per_epoch * settings.epochs
        self.optimiser = torch.optim.SGD(
            model.parameters(),
            lr=settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
            nesterov=settings.momentum > 0,
        )
        self.state = State()

    def finish(self, phases: tuple[str, ...], progress: Callable[[TrainingProgress], None] | None) -> TrainingResult:
        wanted = phase_steps(phases, self.steps_per_epoch, self.settings.epochs)
        snapshots = {}
        layout = torch.channels_last if self.settings.channels_last else torch.contiguous_format
        self.model.to(memory_format=layout)  # type: ignore[call-overload]
        clock = time.perf_counter()
        while True:
            for phase in (name for name, step in wanted.items() if step == self.state.step):
                snapshots[phase] = copy_weights(self.model)
            if self.state.step == self.steps:
                break
            self.take_step()
            seconds = self.state.seconds + time.perf_counter() - clock
            if self.state.step % self.steps_per_epoch == 0:
                self.end_epoch(seconds)
            if progress is not None:
                progress(self.progress())
        self.model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.model.eval()
        curves = self.state.curves
        return TrainingResult(
            {phase: snapshots[phase] for phase in phases}, curves, curves[-1].test_accuracy or 0.0, curves[-1].seconds
        )

    def take_step(self) -> None:
        step = self.state.step
        epoch, index = divmod(step, self.steps_per_epoch)
        if self.state.order is None:
            self.state.order = torch.randperm(
                len(self.images), generator=generator(self.seed, "training", "shuffle", epoch)
            )
        chosen = self.state.order[index * self.batch_size : (index + 1) * self.batch_size]
        batch = Batch(self.images.images[chosen], self.images.labels[chosen])
        batch = defend_batch(self.defences, batch, generator(self.seed, "training", "batch", step))
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.rate(step, self.steps)
        with global_state_from(generator(self.seed, "training", "model", step)):
            loss, correct = self.compute_gradient(batch)
        if self.releases:
            self.release(len(batch))
        self.optimiser.step()
        self.state.step += 1
        self.state.loss += loss
        self.state.correct += correct

    def compute_gradient(self, batch: Batch) -> tuple[float, int]:
        labels = batch.labels.to(self.device)
        self.model.train()
        logits = self.model(batch.pixels().to(self.device))
        loss = F.cross_entropy(logits, labels, label_smoothing=self.settings.label_smoothing)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach()), int((logits.argmax(1) == labels).sum())

    def release(self, images: int) -> None:
        """Let the defences change the gradients as they would leave a client."""
        named = {name: parameter for name, parameter in self.model.named_parameters() if parameter.grad is not None}
        gradients = {name: parameter.grad for name, parameter in named.items() if parameter.grad is not None}
        source = generator(self.seed, "training", "release", self.state.step, device=self.device)
        released = defend_release(self.defences, Update(gradients, images), source)
        for name, parameter in named.items():
            parameter.grad = released.tensors[name]

    def end_epoch(self, seconds: float) -> None:
        epoch = self.state.step // self.steps_per_epoch
        loss = self.state.loss / self.steps_per_epoch
        if not torch.isfinite(torch.tensor(loss)):
            raise SettingsError(
                f"training diverged in epoch {epoch} (the loss is {loss}): use a smaller learning rate than "
                f"{self.settings.learning_rate} or weaker noise"
            )
        tested = epoch % self.settings.test_every == 0 or epoch == self.settings.epochs
        self.state.curves += (
            Epoch(
                epoch,
                loss,
                self.state.correct / (self.steps_per_epoch * self.batch_size),
                accuracy(self.model, self.test, self.device) if tested else None,
                self.optimiser.param_groups[0]["lr"],
                seconds,
            ),
        )
        self.state.order, self.state.loss, self.state.correct = None, 0.0, 0

    def progress(self) -> TrainingProgress:
        step, per_epoch = self.state.step, self.steps_per_epoch
        latest = self.state.curves[-1] if self.state.curves else None
        epoch = -(-step // per_epoch)
        return TrainingProgress(step, self.steps, epoch, self.settings.epochs, step * self.batch_size, latest)


@dataclass
class State:
    """What changes from step to step apart from the weights."""

    step: int = 0
    loss: float = 0.0
    correct: int = 0
    seconds: float = 0.0
    curves: tuple[Epoch, ...] = ()
    order: Tensor | None = field(default=None)


def take_fraction(images: ImageSet, fraction: float, seed: int) -> ImageSet:
    """Keep a random but fixed share of the images, in their own order."""
    if fraction == 1:
        return images
    count = max(1, round(fraction * len(images)))
    order = torch.randperm(len(images), generator=generator(seed, "training", "fraction"))
    return images.take(order[:count].sort().values)


def accuracy(model: nn.Module, images: ImageSet, device: torch.device | str = "cpu") -> float:
    """Take the share of images that the model names correctly; it is left in evaluation mode."""
    model.eval()
    correct = 0
    with torch.inference_mode():
        for pixels, labels in zip(
            torch.split(images.images, TEST_BATCH), torch.split(images.labels, TEST_BATCH), strict=True
        ):
            correct += int((model(to_pixels(pixels.to(device))).argmax(1).cpu() == labels).sum())
    return correct / len(images)


def copy_weights(model: nn.Module) -> Weights:
    """Clone the parameters and buffers to the processor's memory."""
    return {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in model.state_dict().items()
    }


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
