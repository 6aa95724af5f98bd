"""The curves of a run: one point an epoch, as sealed JSON lines and, where it is installed, for TensorBoard."""

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from gradveil.errors import DataError, OutputError
from gradveil.journal import Journal, write_line
from gradveil.results import write_file

FILE = "curves.jsonl"


@dataclass(frozen=True)
class Epoch:
    """One point of the curves; `test_accuracy` is None in an epoch that was not tested, `seconds` run from the start.

    The training figures are running means over the epoch, on the images as the model was fed them.
    """

    epoch: int
    train_loss: float
    train_accuracy: float
    test_accuracy: float | None
    learning_rate: float
    seconds: float


class Writer(Protocol):
    """What is used of TensorBoard's writer."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...
    def flush(self) -> None: ...


def write_curves(folder: Path, curves: Sequence[Epoch]) -> None:
    """Write one line an epoch."""
    write_file(folder / FILE, b"".join(write_line(asdict(point)) for point in curves))


def read_curves(folder: Path) -> tuple[Epoch, ...]:
    """Read the curves of a run."""
    path = folder / FILE
    try:
        points = tuple(Epoch(**line) for line in Journal(path).read())
    except (OutputError, TypeError) as error:
        raise DataError(f"{path} holds no curves: {error}; give a folder that 'gradveil train' wrote") from error
    if not points:
        raise DataError(f"{path} holds no curves: give a folder that 'gradveil train' wrote")
    return points


def open_tensorboard(folder: Path, done: int) -> Writer | None:
    """Open a TensorBoard log that goes on after epoch `done`; None if TensorBoard is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        return None
    module = importlib.import_module("torch.utils.tensorboard")
    writer: Writer = module.SummaryWriter(str(folder / "tensorboard"), purge_step=done + 1)
    return writer


def log_to_tensorboard(writer: Writer, point: Epoch) -> None:
    """Add one point to each curve."""
    for name, value in asdict(point).items():
        if name not in ("epoch", "seconds") and value is not None:
            writer.add_scalar(name.replace("train_", "train/").replace("test_", "test/"), value, point.epoch)
    writer.flush()
