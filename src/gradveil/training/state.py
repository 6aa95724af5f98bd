"""What a run needs to go on after a kill, and where it is kept."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gradveil.errors import CheckpointError, DataError, SettingsError
from gradveil.models import ModelSpec
from gradveil.results import write_file
from gradveil.tensor_files import read_sealed_tensors, seal_tensors
from gradveil.training.checkpoint import Weights, read_record, read_weights, save_checkpoint, shapes_of
from gradveil.training.curves import FILE, Epoch, Writer, log_to_tensorboard, open_tensorboard, write_curves
from gradveil.training.phases import PATTERN

STATE = "resume.safetensors"
RESULT = "train.json"
RUN = "run"


@dataclass
class State:
    """What changes from step to step apart from the weights; `loss` and `correct` are sums over the epoch so far."""

    step: int = 0
    loss: float = 0.0
    correct: int = 0
    seconds: float = 0.0
    curves: tuple[Epoch, ...] = ()

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "State":
        return cls(**{**record, "curves": tuple(Epoch(**point) for point in record["curves"])})


class RunFolder:
    """The folder of one run: its state for `resume`, its snapshots, its curves.

    `made` describes the run; one that resumes must be described alike.
    """

    def __init__(self, path: Path, spec: ModelSpec | None, made: Mapping[str, Any]) -> None:
        self.path = path
        self.spec = spec
        self.made = made
        self.writer: Writer | None = None
        path.mkdir(parents=True, exist_ok=True)

    def save_state(self, model: nn.Module, optimiser: torch.optim.Optimizer, state: State) -> None:
        """Write everything in one file, so that no kill can leave two that disagree."""
        tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
        tensors |= {f"momentum/{name}": tensor for name, tensor in momenta(model, optimiser).items()}
        text = json.dumps({"made": self.made, "state": state.to_record()})
        write_file(self.path / STATE, seal_tensors(tensors, RUN, text))

    def load_state(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> State:
        """Put model and optimiser back to where the run was last saved."""
        tensors, run = self.read_state()
        self.check_made(run["made"])
        try:
            model.load_state_dict(
                {name.removeprefix("model/"): tensor for name, tensor in tensors.items() if name.startswith("model/")}
            )
        except RuntimeError as error:
            raise CheckpointError(f"{self.path / STATE} is of another model: {error}") from error
        for name, parameter in model.named_parameters():
            if f"momentum/{name}" in tensors:
                # In the parameter's own memory layout, as the optimiser would have made it.
                buffer = torch.empty_like(parameter, requires_grad=False).copy_(tensors[f"momentum/{name}"])
                optimiser.state[parameter]["momentum_buffer"] = buffer
        return State.from_record(run["state"])

    def read_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Read the tensors, how the run was made, and its state; check their seal."""
        path = self.path / STATE
        if not path.exists():
            raise CheckpointError(f"{self.path} holds no run to resume: start one there without --resume")
        try:
            tensors, text = read_sealed_tensors(path, RUN)
        except DataError as error:
            raise CheckpointError(f"{error}: start the run again with --overwrite") from error
        return tensors, json.loads(text)

    def check_made(self, before: Mapping[str, Any]) -> None:
        """Refuse to go on with a run that was made otherwise."""
        for name in self.made:
            if json.loads(json.dumps(self.made[name])) != before.get(name):
                raise SettingsError(
                    f"the run in {self.path} has {name} {before.get(name)}, not {self.made[name]}: resume it with the "
                    "options it was started with, or start another in a new folder"
                )

    def save_snapshot(self, phase: str, step: int, weights: Weights) -> None:
        made = {**self.made, "phase": phase, "step": step}
        save_checkpoint(self.path / f"{phase}.safetensors", weights, self.spec, made)

    def has_snapshot(self, phase: str) -> bool:
        """Tell whether both files of a snapshot are there."""
        path = self.path / f"{phase}.safetensors"
        return path.exists() and path.with_suffix(".json").exists()

    def load_snapshot(self, phase: str, model: nn.Module) -> Weights:
        path = self.path / f"{phase}.safetensors"
        try:
            record = read_record(path)
            if record["made"].get("phase") != phase:
                raise CheckpointError(f"{path} holds the weights of another phase: copy it again")
            return read_weights(path, shapes_of(model.state_dict()), record)
        except CheckpointError as error:
            raise CheckpointError(f"{error}; or start the run again with --overwrite") from error

    def add_epoch(self, curves: tuple[Epoch, ...]) -> None:
        """Write the curves with their newest point."""
        write_curves(self.path, curves)
        if self.writer is None:
            self.writer = open_tensorboard(self.path, curves[-1].epoch - 1)
        if self.writer is not None:
            log_to_tensorboard(self.writer, curves[-1])


def momenta(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Name the momentum of each parameter that has one."""
    buffers = {name: optimiser.state[parameter].get("momentum_buffer") for name, parameter in model.named_parameters()}
    return {name: buffer for name, buffer in buffers.items() if buffer is not None}


def is_unfinished(folder: Path) -> bool:
    """Tell whether a folder holds a run that was cut short."""
    return (folder / STATE).exists() and not (folder / RESULT).exists()


def clear_run(folder: Path) -> None:
    """Remove what an earlier run left in a folder that may be overwritten."""
    for path in folder.glob("*.*"):
        if path.name in (RESULT, STATE, FILE) or path.stem in ("init", "final") or PATTERN.fullmatch(path.stem):
            path.unlink()
