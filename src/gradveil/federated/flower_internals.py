"""What has no public name in Flower, in one place: a new version of Flower may change it.

`Message` takes the run and the sender from `TaskIdentity`, which Flower's own engines set; a grid of ours must set it
too. `Grid.run` returns a `Run`, and a message gets its number by its metadata's dictionary, as in Flower's own grids.
SecAgg+ exists for Flower's older interface only, whose messages, names and proxies of clients have no public place.
Flower composes mods in closures (`make_ffn`); no public function tells which mods surround one.
"""

import inspect
from typing import Any

from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.compat.common.recorddict_compat import (
    fitres_to_recorddict,
    parameters_to_arrayrecord,
    recorddict_to_fitins,
)
from flwr.server.compat.grid_client_proxy import GridClientProxy
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.constant import Key as WorkflowKey
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from gradveil.federated.flower import Message

RAISED: int = ErrorCode.CLIENT_APP_RAISED_EXCEPTION
CRASHED: int = ErrorCode.CLIENT_APP_CRASHED
REFUSED: int = ErrorCode.MOD_FAILED_PRECONDITION
RUN_NUMBER = 1
COMPOSED = "make_ffn.<locals>.wrap_ffn.<locals>.new_ffn"
DP_MODULES = {mod.__module__ for mod in (LocalDpMod, adaptiveclipping_mod, fixedclipping_mod)}


def make_run() -> Run:
    """Make an empty run, and make this process its server."""
    TaskIdentity.task_id = 1
    TaskIdentity.run_id = RUN_NUMBER
    TaskIdentity.node_id = SUPERLINK_NODE_ID
    return Run.create_empty(RUN_NUMBER)


def number_message(message: Message, number: str) -> None:
    """Give a message its number; a reply then names it."""
    message.metadata.__dict__["_message_id"] = number


def find_inner_mod(call_next: Any) -> Any | None:
    """Return the mod that a mod calls next; None if it calls the app itself."""
    if getattr(call_next, "__qualname__", "") != COMPOSED:
        return None
    return inspect.getclosurevars(call_next).nonlocals.get("_mod")


def is_inside_dp_mod() -> bool:
    """Tell whether one of Flower's own differential privacy mods is waiting for the caller's reply."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") in DP_MODULES:
            return True
        frame = frame.f_back
    return False


CURRENT_ROUND = WorkflowKey.CURRENT_ROUND

__all__ = [
    "CRASHED",
    "CURRENT_ROUND",
    "MAIN_CONFIGS_RECORD",
    "MAIN_PARAMS_RECORD",
    "RAISED",
    "REFUSED",
    "RUN_NUMBER",
    "GridClientProxy",
    "Run",
    "find_inner_mod",
    "fitres_to_recorddict",
    "is_inside_dp_mod",
    "make_run",
    "number_message",
    "parameters_to_arrayrecord",
    "recorddict_to_fitins",
]
