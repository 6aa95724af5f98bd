"""The commands of a deployment; the contract of all engines runs it as a whole."""

import socket
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from gradveil.errors import GradveilError
from gradveil.federated import FederatedSettings
from gradveil.federated.coordinator import Coordinator, Recording
from gradveil.federated.deployed_app import Plan
from gradveil.federated.deployment import LINK, Deployment, find_port, prepare_deployment, run_deployed, wait_for_port
from tests.federated.scenes import make_participants


def test_everything_is_on_this_machine_and_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLWR_HOME", raising=False)
    deployment = Deployment(tmp_path, 4242)
    deployment.prepare(Plan(FederatedSettings(), Recording(), tmp_path))
    assert deployment.environment()["FLWR_HOME"] == str(tmp_path / "home")
    assert 'address = "127.0.0.1:4242"' in (tmp_path / "home" / "config.toml").read_text()
    for command in (deployment.superlink(), deployment.supernode(1, 2)):
        assert command[command.index("--host") + 1] == "127.0.0.1"
    assert any("partition-id=1" in part for part in deployment.supernode(1, 2))
    assert "dependencies = []" in (tmp_path / "app" / "pyproject.toml").read_text()


def test_a_deployment_on_several_machines_starts_from_its_folder(tmp_path: Path) -> None:
    """The server's process resumes from the first state, at round 0."""
    participants = make_participants(data="fashion-mnist-sample")
    prepare_deployment(participants.settings, participants.data, tmp_path / "run", Recording(capture=(1,)))
    plan = Plan.read(tmp_path / "run" / "plan.json")
    assert (plan.settings, plan.recording.capture) == (participants.settings, (1,))
    assert Coordinator(participants, plan.folder, plan.recording, resume=True).done == 0
    assert "clientapp" in (plan.folder / "app" / "pyproject.toml").read_text()


def test_a_free_port_is_free() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", find_port()))


def test_a_server_that_does_not_start_ends_in_one_line(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, find_port())
    with deployment.started("superlink", [sys.executable, "-c", "raise SystemExit('no licence')"]) as process:
        process.wait()
        with pytest.raises(GradveilError, match="did not start: no licence"):
            wait_for_port(deployment.port, process, tmp_path)


def test_a_process_ends_with_its_block(tmp_path: Path) -> None:
    with Deployment(tmp_path, 1).started("sleeper", ["sleep", "60"]) as process:
        assert process.poll() is None
    assert process.returncode is not None


def test_a_failed_call_names_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "flwr"
    program.write_text('#!/bin/sh\necho \'{"success": false, "error-message": "no such run"}\'\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(GradveilError, match="'flwr list' failed: no such run"):
        Deployment(tmp_path, 1).call("list")


@pytest.mark.slow
def test_the_reason_of_a_stopped_run_comes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set that is not there stops the server's process; no process and no file of the deployment is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    participants = make_participants(clients=1, rounds=1, data="npz:/no/such/file.npz")
    with pytest.raises(GradveilError, match="no/such/file"):
        run_deployed(Coordinator(participants, tmp_path, Recording()), None)
    assert not list(tmp_path.glob("gradveil-deployment-*"))
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [command for command in running if str(tmp_path).encode() in command]


@pytest.mark.slow
def test_a_node_without_credentials_is_refused(tmp_path: Path) -> None:
    """A real SuperLink over TLS, by the commands of the documentation: of two keys, only the registered one gets in."""
    deployment = Deployment(tmp_path, find_port())
    deployment.prepare(Plan(FederatedSettings(clients=2), Recording(), tmp_path))
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *names, "-keyout", str(key)]
    subprocess.run([*make, "-out", str(certificate)], check=True, capture_output=True)
    for name in ("known", "stranger"):
        options = ["-q", "-t", "ecdsa", "-b", "384", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(["ssh-keygen", *options], check=True)
    (tmp_path / "home" / "config.toml").write_text(
        f'[superlink.{LINK}]\naddress = "127.0.0.1:{deployment.port}"\nroot-certificates = "{certificate}"\n'
    )
    files = ["--ssl-ca-certfile", str(certificate), "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
    link = [*deployment.superlink(), *files, "--enable-supernode-auth"]
    link.remove("--insecure")
    with deployment.started("superlink", link) as server:
        wait_for_port(deployment.port, server, tmp_path)
        deployment.call("supernode", "register", str(tmp_path / "known.pub"), LINK)
        nodes = [start_node(deployment, name, certificate) for name in ("known", "stranger")]
        with nodes[0], nodes[1] as stranger:
            stranger.wait(60)
            wait_for_text(tmp_path / "known.log", "SuperNode ID")
    refused = (tmp_path / "stranger.log").read_text()
    assert "Failed to activate SuperNode" in refused
    assert "SuperNode ID" not in refused


def start_node(
    deployment: Deployment, name: str, certificate: Path
) -> AbstractContextManager["subprocess.Popen[bytes]"]:
    command = [*deployment.supernode(0, 2), "--root-certificates", str(certificate), "--max-retries", "1"]
    command.remove("--insecure")
    return deployment.started(name, [*command, "--auth-supernode-private-key", str(deployment.folder / name)])


def wait_for_text(path: Path, text: str) -> None:
    end = time.monotonic() + 60
    while text not in path.read_text():
        assert time.monotonic() < end, path.read_text()
        time.sleep(0.2)
