"""Capsules: a captured round on disk, which any attack can replay.

The attacker's part is `NAME.safetensors` and `NAME.json`: what was sent, what was released, and all that the attacker
may know. The truth part, `NAME.truth.safetensors`, is written only on request. Only their owner can read the files. A
capsule from elsewhere is data: reading one runs no code of its own.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from gradveil.defences import Defence, parse_defences
from gradveil.errors import DataError, InputError
from gradveil.models import ModelSpec
from gradveil.results import PRIVATE, SEAL, environment, read_hashed, read_sealed, seal, to_json, write_file
from gradveil.rounds import Round, Truth
from gradveil.tensor_files import align, read_sealed_tensors, seal_tensors
from gradveil.training import check_fit
from gradveil.types import LocalTraining, Update

SCHEMA = 1
SENT, RELEASED, BUFFER, LABELS, MADE = "sent/", "released/", "buffer/", "labels", "made"
KEYS = {
    *("schema", "model", "model_defences", "known_defences", "local", "images", "participants", "phase", "client"),
    *("round", "environment", "sha256", SEAL),
}
TRUTH = {"original", "transformed", "label", "fed_label", "image"}


@dataclass(frozen=True)
class CapsulePaths:
    """The files of one capsule."""

    tensors: Path

    @classmethod
    def of(cls, path: Path) -> "CapsulePaths":
        """Find the files of a capsule from the path of any of them.

        >>> CapsulePaths.of(Path("a/round-0001-client-02.truth.safetensors")).description.name
        'round-0001-client-02.json'
        """
        stem = path.name.removesuffix(".safetensors").removesuffix(".json").removesuffix(".truth")
        return cls(path.with_name(f"{stem}.safetensors"))

    @property
    def description(self) -> Path:
        return self.tensors.with_suffix(".json")

    @property
    def truth(self) -> Path:
        return self.tensors.with_name(f"{self.tensors.stem}.truth.safetensors")


def name_capsule(number: int, client: int) -> str:
    """Name the capsule of a client's round.

    >>> name_capsule(10, 3)
    'round-0010-client-03.safetensors'
    """
    return f"round-{number:04d}-client-{client:02d}.safetensors"


def write_capsule(path: Path, captured: Round, number: int) -> None:
    """Write the attacker's part of round `number`."""
    paths, update = CapsulePaths.of(path), captured.update
    tensors = {f"{SENT}{name}": tensor for name, tensor in captured.weights.items()}
    tensors |= {f"{RELEASED}{name}": tensor for name, tensor in update.tensors.items()}
    tensors |= {f"{BUFFER}{name}": tensor for name, tensor in (update.buffers or {}).items()}
    if update.labels is not None:
        tensors[LABELS] = update.labels
    content = save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
    record = {
        "schema": SCHEMA,
        "model": captured.spec.to_record(),
        "model_defences": [str(defence) for defence in captured.model_defences],
        "known_defences": [str(defence) for defence in captured.known_defences],
        "local": update.local.to_record(),
        "images": update.images,
        "participants": captured.participants,
        "phase": captured.phase,
        "client": captured.client,
        "round": number,
        "environment": environment(),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    write_file(paths.tensors, content, PRIVATE)
    write_file(paths.description, to_json(seal(json.loads(json.dumps(record)))), PRIVATE)


def read_capsule(path: Path, model: str | nn.Module | None = None, own: Mapping[str, Defence] | None = None) -> Round:
    """Read the attacker's part and check all of it.

    `model` is the person's own, a module or the factory that the capsule names, and `own` holds their defences by what
    the capsule writes of them: a file alone must not decide what code runs.
    """
    paths = CapsulePaths.of(path)
    record = read_sealed(paths.description)
    if record.get("schema") != SCHEMA or set(record) != KEYS:
        odd = ", ".join(sorted(set(record) ^ KEYS)) or "the schema"
        raise DataError(f"{paths.description} is no capsule of schema {SCHEMA}: it differs in {odd}")
    tensors = read_tensors(paths.tensors, str(record["sha256"]))
    try:
        captured = Round(
            read_spec(paths.description, record["model"], model),
            parse_defences(record["model_defences"], own or {}),
            take(tensors, SENT),
            Update(
                take(tensors, RELEASED),
                int(record["images"]),
                LocalTraining.from_record(record["local"]),
                tensors.get(LABELS),
                take(tensors, BUFFER) or None,
            ),
            parse_defences(record["known_defences"], own or {}),
            int(record["participants"]),
            str(record["phase"]),
            int(record["client"]),
        )
        if captured.spec.module is None:
            check_fit(paths.description, captured.spec, captured.model_defences, captured.weights)
    except (InputError, TypeError, ValueError, AttributeError, KeyError) as error:
        raise DataError(f"{paths.description} describes no round that can be attacked: {error}") from error
    return captured


def read_spec(path: Path, record: Mapping[str, Any], model: str | nn.Module | None) -> ModelSpec:
    """Find the model that a capsule is of."""
    if isinstance(model, nn.Module):
        channels, height, width = map(int, record["shape"])
        mean, std = (tuple(map(float, record[name])) for name in ("mean", "std"))
        return ModelSpec.of(model, (channels, height, width), int(record["classes"]), mean, std)
    if ":" in str(record["name"]) and model is None:
        raise DataError(
            f"{path} needs the factory '{record['name']}', which is code: name it yourself (--model {record['name']}) "
            "if you trust it"
        )
    return ModelSpec.from_record({**record, "name": record["name"] if model is None else model})


def read_round_number(path: Path) -> int:
    """Read which round a capsule is of."""
    number = read_sealed(CapsulePaths.of(path).description).get("round")
    if not isinstance(number, int):
        raise DataError(f"{path} names the round {number!r:.60}: it must be a whole number; copy the capsule again")
    return number


def write_truth(path: Path, truths: Sequence[Truth], made: Mapping[str, Any]) -> None:
    """Write the truth part: images, labels and positions; `made` says what data and arm they are of."""
    tensors = {
        "original": torch.cat([truth.original for truth in truths]).contiguous(),
        "transformed": torch.cat([truth.transformed for truth in truths]).contiguous(),
        "label": torch.tensor([truth.label for truth in truths]),
        "fed_label": torch.tensor([truth.fed_label for truth in truths]),
        "image": torch.tensor([truth.image for truth in truths]),
    }
    text = json.dumps(dict(made), sort_keys=True)
    write_file(CapsulePaths.of(path).truth, seal_tensors(tensors, MADE, text), PRIVATE)


def read_truth(path: Path) -> list[Truth]:
    """Read the truth part and check it."""
    path = CapsulePaths.of(path).truth
    try:
        tensors, _ = read_sealed_tensors(path, MADE)
    except DataError as error:
        raise DataError(f"{error}: copy the truth of the capsule again") from error
    if set(tensors) != TRUTH:
        raise DataError(f"{path} holds no truth of a capsule: give the .truth.safetensors that was kept with it")
    return [
        Truth(
            int(tensors["image"][row]),
            int(tensors["label"][row]),
            tensors["original"][row : row + 1],
            tensors["transformed"][row : row + 1],
            int(tensors["fed_label"][row]),
        )
        for row in range(len(tensors["label"]))
    ]


def read_tensors(path: Path, digest: str) -> dict[str, Tensor]:
    """Read the tensors of a capsule after checking their hash, then that every number is finite."""
    try:
        tensors: dict[str, Tensor] = align(load(read_hashed(path, digest)))
    except SafetensorError as error:
        raise DataError(f"{path} cannot be read as safetensors: {error}") from error
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise DataError(f"{path} holds NaN or infinity in '{name}': nothing can be rebuilt from it")
    return tensors


def take(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
