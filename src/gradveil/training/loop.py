"""The centralised training loop: whole batches of tensors, every draw named by its step."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.data import DataSet, ImageSet
from gradveil.defences import Guarantee, guarantee_of
from gradveil.defences.base import Defence, compute_defended, defend_batch, defend_release
from gradveil.defences.guarantee import find_private
from gradveil.errors import DivergenceError, SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator, global_state_from
from gradveil.training.checkpoint import MODEL_DEFENCES, Weights
from gradveil.training.curves import Epoch
from gradveil.training.machine import takes_channels_last, threads
from gradveil.training.optimiser import make_optimiser
from gradveil.training.phases import phase_steps
from gradveil.training.settings import TrainingSettings, count_fraction
from gradveil.training.state import RunFolder, State, clear_run
from gradveil.types import Batch, Update, to_pixels

logger = logging.getLogger(__name__)

TEST_BATCH = 500
SAVE_SECONDS = 60.0


@dataclass(frozen=True)
class TrainingProgress:
    """How far training is, after each step; `latest` is the last finished epoch."""

    step: int
    steps: int
    epoch: int
    epochs: int
    batch_size: int
    latest: Epoch | None


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The weights at the phases asked for, the curves, and the accuracy at the end; DP-SGD has a guarantee too."""

    snapshots: dict[str, Weights]
    curves: tuple[Epoch, ...]
    test_accuracy: float
    seconds: float
    guarantee: Guarantee | None = None


def train(
    model: nn.Module,
    data: DataSet,
    settings: TrainingSettings,
    *,
    defences: Sequence[Defence] = (),
    seed: int,
    phases: Sequence[str] = ("init", "final"),
    device: torch.device | str = "cpu",
    folder: Path | None = None,
    spec: ModelSpec | None = None,
    resume: bool = False,
    progress: Callable[[TrainingProgress], None] | None = None,
) -> TrainingResult:
    """Train `model` in place and keep its weights at the named phases; it ends in evaluation mode.

    The model hooks of the defences belong to whoever builds the model; here their other hooks act.
    With `folder`, snapshots, curves and a state to resume from are kept there; `spec` then makes each snapshot a
    checkpoint that can be loaded without the model at hand.
    """
    if resume and folder is None:
        raise SettingsError("there is nothing to resume without a folder: name the folder of the run")
    with threads(settings.threads):
        run = Run(model, data, settings, defences, seed, torch.device(device))
        wanted = phase_steps(phases, run.steps_per_epoch, settings.epochs)
        records = RunFolder(folder, spec, run.describe(phases, spec)) if folder else None
        snapshots: dict[str, Weights] = {}
        if records and resume:
            snapshots = restore(run, wanted, records)
        elif records:
            clear_run(records.path)
        run.to_end(wanted, snapshots, records, progress)
    curves = run.state.curves
    assert curves[-1].test_accuracy is not None, "the last epoch is always tested"
    ordered = {phase: snapshots[phase] for phase in phases}
    guarantee = guarantee_of(defences, run.batch_size / len(run.images), run.steps)
    return TrainingResult(ordered, curves, curves[-1].test_accuracy, run.state.seconds, guarantee)


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
        layout = (
            torch.channels_last if settings.channels_last and takes_channels_last(model) else torch.contiguous_format
        )
        self.model = model.to(device).to(memory_format=layout)  # type: ignore[call-overload]
        self.data = data
        self.images = take_fraction(data.train, settings.fraction, seed)
        self.settings = settings
        self.defences = tuple(defences)
        self.computes = any(type(defence).compute is not Defence.compute for defence in defences)
        self.private = find_private(defences) is not None
        self.releases = any(type(defence).release is not Defence.release for defence in defences)
        self.seed = seed
        self.device = device
        self.batch_size = min(settings.batch_size, len(self.images))
        self.steps_per_epoch = settings.steps_per_epoch(len(data.train))
        self.steps = self.steps_per_epoch * settings.epochs
        self.optimiser = make_optimiser(model, settings)
        self.state = State()
        self.shuffled: tuple[int, Tensor] = (-1, torch.empty(0))
        self.saved = -math.inf

    def describe(self, phases: Sequence[str], spec: ModelSpec | None) -> dict[str, Any]:
        """Say what the weights depend on, for checkpoints and to recognise the run again."""
        return {
            "model": spec.name if spec else type(self.model).__qualname__,
            "settings": self.settings.to_record(),
            "seed": self.seed,
            "data": self.data.name,
            "images": len(self.images),
            "defences": [str(defence) for defence in self.defences],
            MODEL_DEFENCES: [str(one) for one in self.defences if type(one).model is not Defence.model],
            "device": self.device.type,
            "phases": list(phases),
        }

    def to_end(
        self,
        wanted: dict[str, int],
        snapshots: dict[str, Weights],
        records: RunFolder | None,
        progress: Callable[[TrainingProgress], None] | None,
    ) -> None:
        """Take the remaining steps, filling `snapshots`."""
        started = time.perf_counter() - self.state.seconds
        self.take_snapshots(wanted, snapshots, records)
        if records:
            self.save_if_due(records)
        while self.state.step < self.steps:
            self.take_step()
            if self.state.step % self.steps_per_epoch == 0:
                self.end_epoch(started)
                if records:
                    records.add_epoch(self.state.curves)
            self.state.seconds = time.perf_counter() - started
            self.take_snapshots(wanted, snapshots, records)
            if records:
                self.save_if_due(records)
            if progress is not None:
                progress(self.progress())
        self.model.to(memory_format=torch.contiguous_format)
        self.model.eval()

    def take_snapshots(self, wanted: dict[str, int], snapshots: dict[str, Weights], records: RunFolder | None) -> None:
        """Copy the weights for each phase that is reached at this step."""
        for phase, step in wanted.items():
            if step == self.state.step and phase not in snapshots:
                snapshots[phase] = copy_weights(self.model)
                if records:
                    records.save_snapshot(phase, step, snapshots[phase])

    def save_if_due(self, records: RunFolder) -> None:
        """Save at the start, after each epoch, and once a minute."""
        at_end = self.state.step % self.steps_per_epoch == 0
        if at_end or self.state.seconds > self.saved + SAVE_SECONDS:
            records.save_state(self.model, self.optimiser, self.state)
            self.saved = self.state.seconds

    def take_step(self) -> None:
        """Take one optimiser step on the next batch."""
        step = self.state.step
        batch = self.next_batch()
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.rate(step, self.steps)
        with global_state_from(generator(self.seed, "training", "model", step)):
            loss, correct = self.compute_gradient(batch)
        if not math.isfinite(loss):
            raise DivergenceError(
                f"training diverged at step {step + 1} (the loss is {loss}): use a smaller learning rate than "
                f"{self.settings.learning_rate}, or less noise"
            )
        if self.releases:
            self.release(max(1, len(batch)))
        self.optimiser.step()
        self.state.step += 1
        self.state.loss += loss
        self.state.correct += correct

    def next_batch(self) -> Batch:
        """Draw the images of this step and let the defences change them."""
        chosen = self.images.take(self.draw_each() if self.private else self.next_places())
        source = generator(self.seed, "training", "batch", self.state.step)
        batch = defend_batch(self.defences, Batch(chosen.images, chosen.labels), source)
        return Batch(batch.images.to(self.device), batch.labels.to(self.device))

    def next_places(self) -> Tensor:
        """Take the next places of an epoch's order."""
        epoch, index = divmod(self.state.step, self.steps_per_epoch)
        if self.shuffled[0] != epoch:
            source = generator(self.seed, "training", "shuffle", epoch)
            self.shuffled = epoch, torch.randperm(len(self.images), generator=source)
        return self.shuffled[1][index * self.batch_size : (index + 1) * self.batch_size]

    def draw_each(self) -> Tensor:
        """Draw for each image whether it takes part, as the accountant of DP-SGD supposes; it may be none."""
        source = generator(self.seed, "training", "draw each", self.state.step)
        draws = torch.rand(len(self.images), generator=source)
        return (draws < self.batch_size / len(self.images)).nonzero().squeeze(1)

    def compute_gradient(self, batch: Batch) -> tuple[float, int]:
        """Leave the gradient in the parameters; give the loss and the number of right answers."""
        self.model.train()
        with torch.set_grad_enabled(not self.computes):
            # A defence that computes the gradient itself changes no buffers: this pass updates them all the same.
            logits = self.model(batch.pixels())
            loss = self.loss(logits, batch.labels)
        self.optimiser.zero_grad()
        if self.computes:
            source = generator(self.seed, "training", "compute", self.state.step, device=self.device)
            tensors = compute_defended(self.defences)(self.model, self.loss, batch, source)
            # The number of images drawn is itself private: the sum is divided by how many are expected.
            share = max(1, len(batch)) / self.batch_size
            self.put_gradients({name: share * tensor for name, tensor in tensors.items()})
        else:
            loss.backward()  # type: ignore[no-untyped-call]
        if len(batch) == 0:
            return 0.0, 0
        right = float((logits.argmax(1) == batch.labels).double().mean())
        return float(loss.detach()), round(right * self.batch_size)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels, label_smoothing=self.settings.label_smoothing)

    def release(self, images: int) -> None:
        """Let the defences change the gradients as they would leave a client."""
        gradients = {name: p.grad for name, p in self.model.named_parameters() if p.grad is not None}
        source = generator(self.seed, "training", "release", self.state.step, device=self.device)
        released = defend_release(self.defences, Update(gradients, images), source)
        self.put_gradients(released.tensors)

    def put_gradients(self, tensors: Mapping[str, Tensor]) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.grad = tensors.get(name)

    def end_epoch(self, started: float) -> None:
        """Add a point to the curves, tested if its turn has come."""
        epoch = self.state.step // self.steps_per_epoch
        tested = epoch % self.settings.test_every == 0 or epoch == self.settings.epochs
        point = Epoch(
            epoch,
            self.state.loss / self.steps_per_epoch,
            self.state.correct / (self.steps_per_epoch * self.batch_size),
            accuracy(self.model, self.data.test, self.device) if tested else None,
            self.optimiser.param_groups[0]["lr"],
            time.perf_counter() - started,
        )
        self.state.curves += (point,)
        self.state.loss, self.state.correct = 0.0, 0
        logger.info("%s", point)

    def progress(self) -> TrainingProgress:
        latest = self.state.curves[-1] if self.state.curves else None
        epoch = -(-self.state.step // self.steps_per_epoch)
        return TrainingProgress(self.state.step, self.steps, epoch, self.settings.epochs, self.batch_size, latest)


def restore(run: Run, wanted: dict[str, int], records: RunFolder) -> dict[str, Weights]:
    """Put a run back to where it was last saved and give the snapshots it had taken by then."""
    run.state = records.load_state(run.model, run.optimiser)
    done = [phase for phase, step in wanted.items() if step <= run.state.step]
    return {phase: records.load_snapshot(phase, run.model) for phase in done}


def take_fraction(images: ImageSet, fraction: float, seed: int) -> ImageSet:
    """Keep a random but fixed share of the images, in their own order."""
    if fraction == 1:
        return images
    count = count_fraction(len(images), fraction)
    order = torch.randperm(len(images), generator=generator(seed, "training", "fraction"))
    return images.take(order[:count].sort().values)


def accuracy(model: nn.Module, images: ImageSet, device: torch.device | str = "cpu") -> float:
    """Take the share of images that the model names correctly; it is left in evaluation mode."""
    model.eval()
    correct = 0
    with torch.inference_mode():
        for start in range(0, len(images), TEST_BATCH):
            part = slice(start, start + TEST_BATCH)
            guesses = model(to_pixels(images.images[part].to(device))).argmax(1)
            correct += int((guesses.cpu() == images.labels[part]).sum())
    return correct / len(images)


def copy_weights(model: nn.Module) -> Weights:
    """Clone the parameters and buffers to the processor's memory."""
    return {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in model.state_dict().items()
    }
