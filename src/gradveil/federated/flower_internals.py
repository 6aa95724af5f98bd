"""What has no public name in Flower, in one place: a new version of Flower may change it.

`Message` takes the run and the sender from `TaskIdentity`, which Flower's own engines set; a grid of ours must set it
too. `Grid.run` returns a `Run`, and a message gets its number by its metadata's dictionary, as in Flower's own grids.
"""

from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
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


__all__ = ["CRASHED", "RAISED", "RUN_NUMBER", "Run", "make_run", "number_message"]
