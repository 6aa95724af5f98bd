"""Every command that can be cut short, at its smallest, and what its result is, apart from the time it took."""

import csv
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

TIMES = frozenset(
    {"seconds", "processor_seconds", "finished", "command_line", "sha256_of_content", "sha256", "provenance"}
)
"""Fields that differ between two undisturbed runs: times, what names the folder, and hashes over either."""
RESUME, AGAIN, OVERWRITE = ("--resume",), (), ("--overwrite",)
Way = tuple[str, ...]
Result = dict[str, Any]
"""For each file of a folder what it holds, without the times."""


@dataclass(frozen=True)
class Scenario:
    """A command without its --out, and the ways that a person would try, in this order, to go on after a stop."""

    name: str
    words: tuple[str, ...]
    ways: tuple[Way, ...] = (RESUME, AGAIN, OVERWRITE)

    @property
    def onward(self) -> Way:
        """The way that works in a folder where something was kept."""
        return RESUME if RESUME in self.ways else self.ways[-1]

    def command(self, out: Path, way: Way = AGAIN) -> tuple[str, ...]:
        """Write the command for a folder; to resume, the folder is all that it needs."""
        if way == RESUME:
            return (self.words[0], *RESUME, str(out), "--quiet")
        return (*self.words, "--out", str(out), *way)


def write_data(path: Path) -> None:
    """Write a data set of 120 and 60 images of 12 × 12 pixels in three classes."""
    source = np.random.default_rng(19)

    def draw(count: int) -> tuple[Any, Any]:
        labels = np.arange(count) % 3
        images = source.integers(0, 120, (count, 12, 12)) + 60 * labels[:, None, None]
        return images.astype(np.uint8), labels

    (train, train_labels), (test, test_labels) = draw(120), draw(60)
    names = np.array(["dark", "grey", "light"])
    arrays = {"train_images": train, "train_labels": train_labels, "test_images": test, "test_labels": test_labels}
    np.savez(path, allow_pickle=False, class_names=names, **arrays)


def scenarios(data: Path, capsule: Path) -> list[Scenario]:
    """List the commands; `capsule` is a captured round with its truth."""
    shared = ("--data", f"npz:{data}", "--quiet")
    lenet = (*shared, "--model", "lenet")
    training = ("--recipe", "fast", "--epochs", "5", "--threads", "1", "--batch-size", "20")
    audit = ("--images", "3", "--steps", "3", "--phase", "init", "--phase", "final", "--epochs", "2", "--workers", "1")
    search = ("--candidates", "24", "--epochs", "2", "--images", "4", "--keep", "2", "--workers", "1")
    relu = (*shared, "--model", "lenet-relu")
    score = ("--images", "2", "--quadrature", "lobatto-3", "--epochs", "2", "--fraction", "1")
    single = ("reproduce", "single-transforms", *lenet, *score)
    captured = ("--capsule", str(capsule), "--attack", "adam-cosine", "--steps", "20")
    return [
        Scenario("train", ("train", *lenet, *training, "--snapshots", "init,epoch-1,epoch-3,final")),
        Scenario("search", ("search", *relu, *search)),
        Scenario("search, random", ("search", *relu, *search, "--strategy", "random", "--quadrature", "lobatto-3")),
        Scenario("audit", ("audit", *lenet, *audit, "--policy", "3-1-7", "--attack", "adam-cosine")),
        Scenario("federate", federate(data)),
        Scenario("audit of a capsule", ("audit", *shared, *captured), (AGAIN, OVERWRITE)),
        Scenario("reproduce", single, (AGAIN,)),
    ]


def federate(data: Path) -> tuple[str, ...]:
    """Write the command of a small collaborative training that captures two rounds."""
    clients = ("--model", "lenet", "--clients", "3", "--rounds", "6", "--batch-size", "4")
    kept = ("--capture", "1,3", "--keep-truth", "--checkpoints", "2")
    return ("federate", "--data", f"npz:{data}", "--quiet", *clients, *kept)


def read_result(folder: Path) -> Result:
    """Read all that a finished command left in its folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not is_state(path, folder))
    return {str(path.relative_to(folder)): read_one(path) for path in paths}


def is_state(path: Path, folder: Path) -> bool:
    """Tell whether a file only serves to go on with the training of a study; once that is done, it stays as it is."""
    return path.name == "resume.safetensors" and path.parent != folder


def read_one(path: Path) -> Any:
    """Read one file without its times; of one that cannot be read, its bytes count."""
    try:
        return read_content(path)
    except (ValueError, SafetensorError):
        return path.read_bytes()


def read_content(path: Path) -> Any:
    """Read what a file holds; a page has times in its text, so that only its presence counts."""
    match path.suffix:
        case ".html":
            return "a page"
        case ".json":
            return without_times(json.loads(path.read_bytes()))
        case ".jsonl":
            # With several workers, lines come in the order in which their jobs end.
            lines = [without_times(json.loads(line)) for line in path.read_bytes().splitlines()]
            return sorted(lines, key=lambda line: json.dumps(line, sort_keys=True))
        case ".csv":
            with path.open() as stream:
                return [without_times(row) for row in csv.DictReader(stream)]
        case ".safetensors":
            return read_tensors(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_tensors(path: Path) -> dict[str, Any]:
    """Hash every tensor; texts beside them are read as JSON where they are."""
    with safe_open(path, framework="np") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        texts = without_times(dict(file.metadata() or {}))
    hashes = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in tensors.items()}
    return {"tensors": hashes, "texts": {name: read_text(text) for name, text in texts.items()}}


def read_text(text: str) -> Any:
    try:
        return without_times(json.loads(text))
    except ValueError:
        return text


def without_times(value: Any) -> Any:
    """Leave out every field of `TIMES`, at any depth."""
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in TIMES}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def differences(expected: Result, found: Result) -> list[str]:
    """Name the files that differ, are missing, or should not be there."""
    return sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
