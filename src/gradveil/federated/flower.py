"""Flower, as this room uses it: its environment is set before it is imported.

Flower reports its use and looks for updates over the network, writes to the home folder, and lets Ray listen on every
address, unless the environment says otherwise when it is imported.
"""

import logging
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradveil.errors import import_extra

ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
}
RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Without a cluster over several machines, Ray binds to 127.0.0.1.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # Without it, Ray warns that it will leave graphics cards visible to tasks that asked for none.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
HOME = "FLWR_HOME"


@contextmanager
def alone_on_this_machine() -> Iterator[None]:
    """Let a Ray that is started within the block listen on 127.0.0.1 only; afterwards Ray may join clusters again."""
    before = {name: os.environ.get(name) for name in RAY_ENVIRONMENT}
    os.environ.update(RAY_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def prepare_environment(home: Path | None = None) -> None:
    """Keep Flower quiet and out of the home folder.

    `home` is where Flower may write; without it, one that is set already stays, or a new name in the temporary folder
    is taken. Flower makes the folder if it needs it.
    """
    os.environ.update(ENVIRONMENT)
    if home is not None:
        os.environ[HOME] = str(home.absolute())
    elif not os.environ.get(HOME):
        os.environ[HOME] = str(Path(tempfile.gettempdir()) / f"gradveil-flower-{secrets.token_hex(8)}")


if "flwr" not in sys.modules:
    # An app that imported Flower itself has an environment of its own, which a mod must not change.
    prepare_environment()
import_extra("flwr", "federated")

from flwr.app import (  # noqa: E402
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.client.mod import secaggplus_mod  # noqa: E402
from flwr.clientapp import ClientApp  # noqa: E402
from flwr.common import (  # noqa: E402
    Code,
    FitIns,
    FitRes,
    Status,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.server import LegacyContext  # noqa: E402
from flwr.server.strategy import FedAvg as LegacyFedAvg  # noqa: E402
from flwr.server.workflow import SecAggPlusWorkflow  # noqa: E402
from flwr.serverapp import Grid, ServerApp  # noqa: E402
from flwr.serverapp.strategy import Strategy  # noqa: E402


@contextmanager
def silenced() -> Iterator[None]:
    """Take Flower's own handler off its log within the block; a person's handlers on the root logger still get it."""
    logger = logging.getLogger("flwr")
    handlers = list(logger.handlers)
    # Without any handler, Python itself prints warnings to stderr.
    logger.handlers = [logging.NullHandler()]
    try:
        yield
    finally:
        logger.handlers = handlers


__all__ = [
    "Array",
    "ArrayRecord",
    "ClientApp",
    "Code",
    "ConfigRecord",
    "Context",
    "Error",
    "FitIns",
    "FitRes",
    "Grid",
    "LegacyContext",
    "LegacyFedAvg",
    "Message",
    "MessageType",
    "MetricRecord",
    "RecordDict",
    "SecAggPlusWorkflow",
    "ServerApp",
    "Status",
    "Strategy",
    "alone_on_this_machine",
    "ndarrays_to_parameters",
    "parameters_to_ndarrays",
    "prepare_environment",
    "secaggplus_mod",
    "silenced",
]
