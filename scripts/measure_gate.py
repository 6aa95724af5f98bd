"""Measure how often the gate of the example app refuses: undefended updates, which it should, and defended ones.

`python -m scripts.measure_gate run FOLDER` runs what FOLDER/journal.jsonl lacks; `table FOLDER` prints the table. The
settings were chosen on the images and draws of the part "chosen"; the part "shown" has others.
"""

import importlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from flwr.serverapp.strategy import FedAvg

from gradveil.federated import DefenceMod, GateMod
from gradveil.federated.flower import ArrayRecord, ClientApp, Context, Message
from gradveil.federated.memory import remembering
from gradveil.federated.mods import CallNext
from gradveil.journal import Journal
from gradveil.results import environment
from tests.federated.grid import AppGrid

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "flower-app"
RUN = {"batch-size": 32, "local-epochs": 3, "learning-rate": 0.02, "shuffle": True}
DEFENCES = ("none", "clip:1,gaussian:1e-2", "clip:1,gaussian:3e-2")
IMAGES = {"chosen": range(1000, 1012), "shown": range(2000, 2032)}
CLIENTS = 5000
THRESHOLD = 3.0


@dataclass(frozen=True)
class GateTrial:
    """One client with one image, and the seed of its policy's draws; the noise comes from the operating system."""

    part: str
    defence: str
    image: int
    seed: int


def trials() -> list[GateTrial]:
    """List the trials; an image is used once for each defence, each time with another draw of the policy."""
    return [
        GateTrial(part, defence, image, 10 * image + number)
        for part, images in IMAGES.items()
        for number, defence in enumerate(DEFENCES)
        for image in images
    ]


class MeasuringGate:
    """A gate that notes what its attacks reached, and lets everything pass."""

    def __init__(self, gate: GateMod) -> None:
        self.gate, self.advantage, self.seconds = gate, 0.0, 0.0

    def __call__(self, message: Message, context: Context, call_next: CallNext) -> Message:
        """Let the app work, and attack its reply."""
        with remembering() as memory:
            reply = call_next(message, context)
            started = time.perf_counter()
            self.advantage = self.gate.measure(message, reply, memory, THRESHOLD)
            self.seconds = time.perf_counter() - started
        return reply


def load_protected(folder: Path) -> ModuleType:
    """Import the example with PROTECT.diff applied."""
    shutil.copytree(EXAMPLE / "fashion", folder / "fashion", ignore=shutil.ignore_patterns("__pycache__"))
    inside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(["git", "apply", str(EXAMPLE / "PROTECT.diff")], cwd=folder, env=inside, check=True)
    sys.path.insert(0, str(folder))
    return importlib.import_module("fashion.client_app")


def measure(example: ModuleType, trial: GateTrial) -> dict[str, Any]:
    """Let one client work for one round and attack what it would send."""
    gate = MeasuringGate(GateMod(example.described, example.public, THRESHOLD))
    app = ClientApp(mods=[gate, DefenceMod(example.described, default=trial.defence)])
    app.train()(example.train)
    torch.manual_seed(0)
    weights = ArrayRecord(importlib.import_module("fashion.task").Net().state_dict())
    torch.manual_seed(trial.seed)
    grid = AppGrid(app, [{"partition-id": trial.image, "num-partitions": CLIENTS}], RUN)
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=1, min_available_nodes=1)
    strategy.start(grid, weights, num_rounds=1)
    return {"advantage": gate.advantage, "refused": not gate.advantage <= THRESHOLD, "seconds": gate.seconds}


def run(folder: Path) -> None:
    """Run the trials that the journal lacks."""
    torch.set_num_threads(1)
    logging.getLogger("flwr").setLevel(logging.ERROR)
    journal = Journal(folder / "journal.jsonl")
    done = [line["trial"] for line in journal.read()]
    with tempfile.TemporaryDirectory(prefix="gradveil-") as name:
        example = load_protected(Path(name))
        for trial in trials():
            if asdict(trial) not in done:
                journal.append({"trial": asdict(trial), **measure(example, trial), "environment": environment()})


def make_table(folder: Path) -> list[str]:
    """Lay out how often the gate refused, part by part."""
    lines = Journal(folder / "journal.jsonl").read()
    table = [
        "| images and draws | defence | n | refused | passed | advantage of those that passed, dB | median seconds |"
    ]
    table.append("|" + "---|" * 7)
    for part, images in IMAGES.items():
        for defence in DEFENCES:
            wanted = [one for one in lines if (one["trial"]["part"], one["trial"]["defence"]) == (part, defence)]
            table.append(f"| {part} | `{defence}` | {write_cells(wanted, len(images))} |")
    return table


def write_cells(lines: list[dict[str, Any]], asked: int) -> str:
    if not lines:
        return "not run | | | |"
    passed = sorted(line["advantage"] for line in lines if not line["refused"])
    count = f"{len(lines)}" if len(lines) == asked else f"{len(lines)} of {asked}"
    span = f"{passed[0]:.1f} to {passed[-1]:.1f}" if passed else "–"
    seconds = sorted(line["seconds"] for line in lines)[len(lines) // 2]
    return f"{count} | {len(lines) - len(passed)} | {len(passed)} | {span} | {seconds:.0f}"


if __name__ == "__main__":
    verb, place = sys.argv[1:3]
    if verb == "run":
        run(Path(place))
    print("\n".join(make_table(Path(place))))
