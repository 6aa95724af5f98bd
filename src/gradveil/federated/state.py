"""What a run needs to go on after a kill: one sealed file, so that no kill can leave two that disagree."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradveil.errors import CheckpointError, DataError, SettingsError
from gradveil.federated.server import Server
from gradveil.results import canonical, write_file
from gradveil.tensor_files import read_sealed_tensors, seal_tensors

FILE = "resume.safetensors"
MODEL, MOMENTUM, STATE = "model/", "momentum/", "state"


def save_state(folder: Path, server: Server, made: Mapping[str, Any], number: int, seconds: float) -> None:
    """Write the weights, the momenta and the number of the last finished round; `made` describes the run."""
    write_state(folder, take_tensors(server), made, number, seconds)


def take_tensors(server: Server) -> dict[str, Tensor]:
    """Return all tensors that the next rounds depend on; they are the server's own."""
    tensors = {f"{MODEL}{name}": tensor for name, tensor in server.model.state_dict().items()}
    for name, parameter in server.model.named_parameters():
        momentum = server.optimiser.state[parameter].get("momentum_buffer")
        if momentum is not None:
            tensors[f"{MOMENTUM}{name}"] = momentum
    return {name: tensor.detach().contiguous() for name, tensor in sorted(tensors.items())}


def write_state(
    folder: Path, tensors: Mapping[str, Tensor], made: Mapping[str, Any], number: int, seconds: float
) -> None:
    """Write what `take_tensors` returned, sealed."""
    text = canonical({"made": dict(made), "round": number, "seconds": seconds}).decode()
    write_file(folder / FILE, seal_tensors(tensors, STATE, text))


def load_state(folder: Path, server: Server, made: Mapping[str, Any]) -> tuple[int, float]:
    """Put the server back to where the run was saved; return the number of finished rounds and the seconds so far."""
    state, tensors = read_state(folder / FILE)
    check_made(folder, json.loads(json.dumps(made)), state["made"])
    put_back(server, tensors)
    return int(state["round"]), float(state["seconds"])


def put_back(server: Server, tensors: Mapping[str, Tensor]) -> None:
    """Undo `take_tensors`."""
    weights = {name.removeprefix(MODEL): tensor for name, tensor in tensors.items() if name.startswith(MODEL)}
    server.model.load_state_dict(weights)
    for name, parameter in server.model.named_parameters():
        if f"{MOMENTUM}{name}" in tensors:
            buffer = torch.empty_like(parameter, requires_grad=False).copy_(tensors[f"{MOMENTUM}{name}"])
            server.optimiser.state[parameter]["momentum_buffer"] = buffer


def read_state(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a state and check its seal."""
    if not path.exists():
        raise CheckpointError(f"{path.parent} holds no run to resume: start one there without --resume")
    try:
        tensors, text = read_sealed_tensors(path, STATE)
    except DataError as error:
        raise CheckpointError(f"{error}: start the run again with --overwrite") from error
    state: dict[str, Any] = json.loads(text)
    return state, dict(sorted(tensors.items()))


def check_made(folder: Path, now: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that was made otherwise."""
    for name in sorted({*now, *before}):
        if now.get(name) != before.get(name):
            raise SettingsError(
                f"the run in {folder} has {name} {before.get(name)}, not {now.get(name)}: resume it with the options "
                "it was started with, or start another in a new folder"
            )


def is_unfinished(folder: Path) -> bool:
    """Tell whether a folder holds a run that was cut short."""
    return (folder / FILE).exists() and not (folder / "federate.json").exists()
