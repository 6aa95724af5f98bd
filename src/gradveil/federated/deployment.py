"""Flower's deployment on this machine: a SuperLink, a SuperNode for each client, and `flwr run`.

All processes talk over 127.0.0.1. Flower starts a process for every message, so that a round of ten clients takes 34
to 46 seconds on two cores: it is for trying out what will run on many machines, not for many rounds.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradveil.data import DataSet
from gradveil.errors import GradveilError
from gradveil.federated.coordinator import Coordinator, Recording
from gradveil.federated.deployed_app import ERROR, PLAN, Plan
from gradveil.federated.flower import prepare_environment
from gradveil.federated.outcomes import RoundOutcome
from gradveil.federated.participants import Participants
from gradveil.federated.settings import FederatedSettings
from gradveil.stops import list_descendants

LOOPBACK = "127.0.0.1"
LINK = "gradveil"
POLL_SECONDS, LIST_SECONDS, START_SECONDS, STOP_SECONDS = 0.5, 5.0, 60.0, 15.0
APP = """from gradveil.federated.deployed_app import make_client_app, make_server_app

server_app = make_server_app()
client_app = make_client_app()
"""
PROJECT = """[project]
name = "gradveil-federate"
version = "1.0.0"
description = "Collaborative training with gradveil"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "gradveil"

[tool.flwr.app.components]
serverapp = "gradveil_app:server_app"
clientapp = "gradveil_app:client_app"

[tool.flwr.app.config]
plan = ""
"""


@dataclass(frozen=True)
class Deployment:
    """The folder of a deployment's own files, and the address of its SuperLink."""

    folder: Path
    port: int

    def prepare(self, plan: Plan) -> None:
        """Write the plan, the app that reads it, and the address for `flwr`."""
        write_app(self.folder, plan)
        (self.folder / "home").mkdir()
        (self.folder / "home" / "config.toml").write_text(
            f'[superlink]\ndefault = "{LINK}"\n\n[superlink.{LINK}]\naddress = "{LOOPBACK}:{self.port}"\n'
            "insecure = true\n"
        )

    def environment(self) -> dict[str, str]:
        """Return the environment of every process: Flower's programs beside this Python, and this gradveil."""
        places = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            "FLWR_HOME": str(self.folder / "home"),
            "PATH": os.pathsep.join(filter(None, places)),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "OMP_NUM_THREADS": "1",
        }

    @contextmanager
    def started(self, name: str, command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a program within the block; what it prints goes to a file."""
        with (self.folder / f"{name}.log").open("wb") as log:
            # In a group of its own, which a Ctrl-C does not reach, and which can be ended with all that it started.
            process = subprocess.Popen(
                command,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            grace = 0.0
            try:
                yield process
                grace = STOP_SECONDS
            except Exception:
                grace = STOP_SECONDS
                raise
            finally:
                # After Ctrl-C or SIGTERM, which are no `Exception`, there is no time to wait.
                end_group(process, grace)

    def superlink(self) -> list[str]:
        """Write the command of the server."""
        options = ["--host", LOOPBACK, "--port", str(self.port), "--disable-runtime-dependency-installation"]
        return ["flower-superlink", "--insecure", *options]

    def supernode(self, client: int, clients: int) -> list[str]:
        """Write the command of a client's node."""
        config = f'partition-id={client} num-partitions={clients} plan="{self.folder / PLAN}"'
        address = ["--superlink", f"{LOOPBACK}:{self.port}", "--host", LOOPBACK, "--port", str(find_port())]
        return ["flower-supernode", "--insecure", *address, "--node-config", config]

    def call(self, *arguments: str) -> dict[str, Any]:
        """Run `flwr` and read its JSON."""
        ended = subprocess.run(
            ["flwr", *arguments, "--format", "json"],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            answer: dict[str, Any] = json.loads(ended.stdout)
        except ValueError:
            answer = {"success": False, "error-message": (ended.stderr or ended.stdout).strip()[-300:]}
        if not answer.get("success"):
            raise GradveilError(f"'flwr {arguments[0]}' failed: {answer.get('error-message', answer)}")
        return answer

    def submit(self) -> str:
        """Start the run and return its number."""
        plan = f'plan="{self.folder / PLAN}"'
        return str(self.call("run", str(self.folder / "app"), LINK, "--run-config", plan)["run-id"])

    def status(self, run: str) -> str:
        """Return the status of the run; `flwr run` itself ends without an error even if the run fails."""
        runs = self.call("list", LINK, "--run-id", run)["runs"]
        return str(runs[0]["status"])


def end_group(process: "subprocess.Popen[bytes]", grace: float) -> None:
    """Ask a process to end, and after so many seconds end it with all of its group; with no time, all it started."""
    if not grace:
        # Flower puts some of them into groups of their own.
        for one in list_descendants(process.pid):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def write_app(folder: Path, plan: Plan) -> None:
    """Write the plan and the Flower app that reads it."""
    (folder / "app").mkdir(exist_ok=True)
    plan.write(folder / PLAN)
    (folder / "app" / "gradveil_app.py").write_text(APP)
    (folder / "app" / "pyproject.toml").write_text(PROJECT)


def prepare_deployment(
    settings: FederatedSettings, data: DataSet, folder: Path, recording: Recording | None = None
) -> None:
    """Write what a deployment on several machines needs: plan.json, the app for `flwr run`, and the first state.

    The server's machine keeps the folder, every client's machine a plan.json of its own. `root` of a plan is where
    that machine has its data sets.
    """
    folder.mkdir(parents=True, exist_ok=True)
    coordinator = Coordinator(Participants(settings, data), folder, recording or Recording())
    write_app(folder, Plan(settings, coordinator.recording, folder))


def run_deployed(coordinator: Coordinator, root: Path | None) -> None:
    """Run the server and every client in processes of their own, until the run has ended."""
    prepare_environment()
    clients = coordinator.settings.clients
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="gradveil-deployment-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        deployment = Deployment(folder, find_port())
        deployment.prepare(Plan(coordinator.settings, coordinator.recording, coordinator.folder, root))
        link = stack.enter_context(deployment.started("superlink", deployment.superlink()))
        wait_for_port(deployment.port, link, folder)
        for client in range(clients):
            stack.enter_context(deployment.started(f"supernode-{client}", deployment.supernode(client, clients)))
        watch(deployment, coordinator, deployment.submit())


def watch(deployment: Deployment, coordinator: Coordinator, run: str) -> None:
    """Report rounds as the server writes them down, until Flower says that the run has ended."""
    reported, asked = coordinator.done, time.monotonic()
    status = ""
    while not status.startswith("finished"):
        time.sleep(POLL_SECONDS)
        if time.monotonic() - asked > LIST_SECONDS:
            status, asked = deployment.status(run), time.monotonic()
        for line in coordinator.journal.read()[reported:]:
            reported += 1
            if coordinator.on_round is not None:
                coordinator.on_round(RoundOutcome.from_record(line), coordinator.rounds)
    if status != "finished:completed":
        report = deployment.folder / ERROR
        reason = report.read_text() if report.exists() else last_lines(deployment.folder / "superlink.log")
        raise GradveilError(reason if report.exists() else f"the deployment ended as '{status}': {reason}")


def find_port() -> int:
    """Find a port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Wait until the SuperLink answers."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection((LOOPBACK, port), 1).close()
            return
        except OSError:
            time.sleep(POLL_SECONDS)
    raise GradveilError(f"the SuperLink did not start: {last_lines(folder / 'superlink.log')}")


def last_lines(path: Path, count: int = 3) -> str:
    """Return the end of a log as one line."""
    return " / ".join(path.read_text(errors="replace").strip().splitlines()[-count:])
