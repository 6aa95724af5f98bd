"""The centralised training loop: whole batches of tensors, every draw named by its step."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gradveil.client import Client, Step, make_optimiser
from gradveil.data import DataSet, ImageSet, spread
from gradveil.defences import Defence, Guarantee, guarantee_of
from gradveil.errors import DivergenceError, SettingsError
from gradveil.machine import lay_out, threads
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training.checkpoint import MODEL_DEFENCES, Weights
from gradveil.training.curves import Epoch
from gradveil.training.phases import phase_steps
from gradveil.training.settings import TrainingSettings, count_fraction
from gradveil.training.state import RunFolder, State, clear_run
from gradveil.types import Batch, to_pixels

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
    code: Mapping[str, str] | None = None,
) -> TrainingResult:
    """Train `model` in place and keep its weights at the named phases; it ends in evaluation mode.

    The model hooks of the defences belong to whoever builds the model; here their other hooks act.
    With `folder`, snapshots, curves and a state to resume from are kept there; `spec` then makes each snapshot a
    checkpoint that can be loaded without the model at hand. `code` holds the SHA-256 of the source of defences of a
    person's own, by name; a run is not resumed with other code.
    """
    if resume and folder is None:
        raise SettingsError("there is nothing to resume without a folder: name the folder of the run")
    with threads(settings.threads):
        run = TrainingRun(model, data, settings, defences, seed, torch.device(device))
        wanted = phase_steps(phases, run.steps_per_epoch, settings.epochs)
        made = {**run.describe(phases, spec), **({"code": dict(code)} if code else {})}
        records = RunFolder(folder, spec, made) if folder else None
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


class TrainingRun:
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
        self.model = model.to(device)
        layout = lay_out(self.model, data.shape, settings.channels_last)
        self.images = take_fraction(data.train, settings.fraction, seed)
        self.batch_size = min(settings.batch_size, len(self.images))
        local = replace(settings.local(), batch_size=self.batch_size)
        self.client = Client(self.model, local, layout=layout)
        # The tensors of the model itself: they change with it.
        self.weights = self.model.state_dict()
        self.data = data
        self.settings = settings
        self.defences = tuple(defences)
        self.private = any(defence.poisson for defence in defences)
        self.seed = seed
        self.device = device
        self.steps_per_epoch = settings.steps_per_epoch(len(data.train))
        self.steps = self.steps_per_epoch * settings.epochs
        self.optimiser = make_optimiser(model, local)
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
            MODEL_DEFENCES: [str(one) for one in self.defences if "model" in one.hooks],
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
        if records:
            # Before the first snapshot: with a state there is always something to go on with.
            self.save_if_due(records)
        self.take_snapshots(wanted, snapshots, records)
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
        lay_out(self.model, self.data.shape, channels_last=False)
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
        """Let the client compute the gradient of the next batch, and take one optimiser step along what it releases."""
        step = self.state.step
        chosen = self.images.take(self.draw_each() if self.private else self.next_places())
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.rate(step, self.steps)
        seen: list[Step] = []
        update = self.client.update(
            self.weights,
            Batch(chosen.images, chosen.labels),
            self.defences,
            generator(self.seed, "training", "batch", step),
            watch=seen.append,
        )
        if not math.isfinite(seen[0].loss):
            raise DivergenceError(
                f"training diverged at step {step + 1} (the loss is {seen[0].loss}): use a smaller learning rate than "
                f"{self.settings.learning_rate}, or less noise"
            )
        for name, parameter in self.model.named_parameters():
            parameter.grad = update.tensors.get(name)
        self.optimiser.step()
        self.state.step += 1
        self.state.loss += seen[0].loss
        self.state.correct += seen[0].correct

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


def restore(run: TrainingRun, wanted: dict[str, int], records: RunFolder) -> dict[str, Weights]:
    """Put a run back to where it was last saved and give the snapshots it had taken by then.

    One of the present step that is not there, or not whole, is taken again.
    """
    run.state = records.load_state(run.model, run.optimiser)
    done = [phase for phase, step in wanted.items() if step < run.state.step]
    now = [phase for phase, step in wanted.items() if step == run.state.step and records.has_snapshot(phase)]
    return {phase: records.load_snapshot(phase, run.model) for phase in (*done, *now)}


def take_fraction(images: ImageSet, fraction: float, seed: int) -> ImageSet:
    """Keep a random but fixed share of the images, the same of every class, in their own order."""
    if fraction == 1:
        return images
    count = count_fraction(len(images), fraction)
    order = spread(images.labels, generator(seed, "training", "fraction"))
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
