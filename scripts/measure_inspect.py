"""Measure what `gradveil inspect` sees of honest and of planted models: the figures behind its limits.

`python -m scripts.measure_inspect run FOLDER` runs what FOLDER/journal.jsonl lacks; `table FOLDER` writes its table.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gradveil import data
from gradveil.inspection import MEASURES, choose_images, inspect_model
from gradveil.journal import Journal
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.results import provenance, write_file
from gradveil.rng import generator
from gradveil.training import FAST, train
from tests.inspection.planted import plant_fishing, plant_imprint, plant_traps

EPOCHS = 4
SEEDS = (10, 11, 12, 13)
"""The limits were chosen on the seeds 0 to 3 and 100."""
FRESH = ("mlp", "lenet", "lenet-relu", "convnet-8", "convnet9-4", "resnet20-1", "resnet18-w4", "vit-tiny")
TRAINED = ("lenet", "lenet-relu", "convnet-8", "resnet20-1")
PLANTED = ("imprint of the brightness", "imprint of a direction", "traps 0.99", "traps 0.9", "traps 0.7", "fishing")


@dataclass(frozen=True)
class Trial:
    """One model: fresh, trained, or with something planted into a fresh one."""

    kind: str
    model: str
    seed: int


def trials() -> list[Trial]:
    """List the models, the quick ones first."""
    return [
        *(Trial("fresh", model, seed) for seed in SEEDS for model in FRESH),
        *(Trial(kind, "mlp", seed) for seed in SEEDS for kind in PLANTED),
        *(Trial(f"trained {EPOCHS} epochs", model, seed) for seed in SEEDS[:2] for model in TRAINED),
    ]


def plant(kind: str, model: nn.Module, spec: ModelSpec, seed: int) -> None:
    """Plant one of the kinds into a multilayer perceptron."""
    linear = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    source = generator(seed, "planted", kind)
    name, _, scale = kind.partition(" ")
    if name == "traps":
        plant_traps(linear[0], spec, float(scale), source)
    elif name == "imprint":
        direction = torch.randn(linear[0].in_features, generator=source) if kind.endswith("direction") else None
        plant_imprint(linear[0], spec, choose_images(spec, None, seed + 1000), direction)
    else:
        plant_fishing(linear[-1], seed % spec.classes)


def measure(trial: Trial, sample: data.DataSet) -> dict[str, Any]:
    """Make the model of a trial and look at it."""
    spec = ModelSpec(trial.model, sample.shape, sample.classes, sample.mean, sample.std)
    model = spec.build(generator(trial.seed, "model"))
    if trial.kind.startswith("trained"):
        train(model, sample, replace(FAST, epochs=EPOCHS, test_every=EPOCHS, threads=1), seed=trial.seed)
    elif trial.kind != "fresh":
        plant(trial.kind, model, spec, trial.seed)
    found = inspect_model(model, CrossEntropy(), choose_images(spec, None, trial.seed), trial.seed)
    largest = {one.name: found.largest(one) for one in MEASURES}
    values = {name: None if value is None else min(value[0], 1e9) for name, value in largest.items()}
    return {"trial": asdict(trial), "odd": len(found.odd), "largest": values, "made_by": provenance()}


def run(folder: Path) -> None:
    """Measure what the journal lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / "journal.jsonl")
    done = [line["trial"] for line in journal.read()]
    torch.set_num_threads(1)
    sample = data.load("fashion-mnist-sample")
    for trial in trials():
        if asdict(trial) not in done:
            journal.append(measure(trial, sample))
            print(trial, flush=True)


def table(folder: Path) -> None:
    """Write one line for each kind: how many models, how many of them are called odd, and the largest values."""
    lines = Journal(folder / "journal.jsonl").read()
    kinds = dict.fromkeys(line["trial"]["kind"] for line in lines)
    rows = ["| models | n | called odd | " + " | ".join(one.name for one in MEASURES) + " |"]
    rows.append("|---|---|---|" + "---|" * len(MEASURES))
    rows.append("| limit | | | " + " | ".join(one.show(one.limit) for one in MEASURES) + " |")
    for kind in kinds:
        own = [line for line in lines if line["trial"]["kind"] == kind]
        names = dict.fromkeys(line["trial"]["model"] for line in own)
        odd = sum(line["odd"] > 0 for line in own)
        shown = [find_largest(own, one.name, one.show) for one in MEASURES]
        rows.append(f"| {kind}: {', '.join(names)} | {len(own)} | {odd} | {' | '.join(shown)} |")
    made = lines[0]["made_by"]
    rows.append(
        f"\nThe largest value over the models of a line. Made by gradveil {made['gradveil']}, torch {made['torch']}, "
        f"{made['processor']}."
    )
    write_file(folder / "inspect.md", "\n".join(rows) + "\n")


def find_largest(lines: list[dict[str, Any]], name: str, show: Callable[[float], str]) -> str:
    values = [line["largest"][name] for line in lines if line["largest"][name] is not None]
    return show(max(values)) if values else "–"


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]](Path(sys.argv[2]))
