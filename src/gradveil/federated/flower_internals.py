"""What has no public name in Flower, in one place: a new version of Flower may change it.

`Message` takes the run and the sender from `TaskIdentity`, which Flower's own engines set; a grid of ours must set it
too. `Grid.run` returns a `Run`, and a message gets its number by its metadata's dictionary, as in Flower's own grids.
SecAgg+ exists for Flower's older interface only, whose messages, names and proxies of clients have no public place.
"""

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
RUN_NUMBER = 1


def make_run() -> Run:
    """Make an empty run, and make this process its server."""
    TaskIdentity.task_id = 1
    TaskIdentity.run_id = RUN_NUMBER
    TaskIdentity.node_id = SUPERLINK_NODE_ID
    return Run.create_empty(RUN_NUMBER)


def number_message(message: Message, number: str) -> None:
    """Give a message its number; a reply then names it."""
    message.metadata.__dict__["_message_id"] = number


CURRENT_ROUND = WorkflowKey.CURRENT_ROUND

__all__ = [
    "CRASHED",
    "CURRENT_ROUND",
    "MAIN_CONFIGS_RECORD",
    "MAIN_PARAMS_RECORD",
    "RAISED",
    "RUN_NUMBER",
    "GridClientProxy",
    "Run",
    "fitres_to_recorddict",
    "make_run",
    "number_message",
    "parameters_to_arrayrecord",
    "recorddict_to_fitins",
]
