"""The plan of a deployment, and the apps that read it."""

from pathlib import Path

import pytest

from gradveil.errors import CheckpointError, DataError, SettingsError, UnknownNameError
from gradveil.federated import FederatedSettings
from gradveil.federated.coordinator import Coordinator, Recording
from gradveil.federated.deployed_app import ERROR, Plan, find_plan, make_client_app, make_server_app
from gradveil.federated.flower import Context, Message, MessageType, RecordDict, silenced
from gradveil.federated.in_process import FIRST_NODE, InProcessGrid
from gradveil.federated.wire import read_client, to_arrays, write_instruction
from gradveil.workers import Workers

SETTINGS = FederatedSettings(model="lenet", clients=2, rounds=1, batch_size=4, arm="none")


def test_a_plan_turns_into_json_and_back(tmp_path: Path) -> None:
    for root in (None, tmp_path):
        plan = Plan(SETTINGS, Recording((1, 10), True, (5,)), tmp_path, root)
        plan.write(tmp_path / "plan.json")
        assert find_plan({"plan": str(tmp_path / "plan.json")}) == plan


def test_odd_plans_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="plan="):
        find_plan({})
    with pytest.raises(DataError, match="cannot be read"):
        find_plan({"plan": str(tmp_path / "plan.json")})
    (tmp_path / "plan.json").write_text('{"code": "import os"}')
    with pytest.raises(UnknownNameError, match="code"):
        find_plan({"plan": str(tmp_path / "plan.json")})


def test_the_apps_work_from_the_plan_alone(tmp_path: Path) -> None:
    """The server's app over a grid whose nodes name the plan; the client's app takes it from its own node."""
    plan = Plan(SETTINGS, Recording(), tmp_path)
    plan.write(tmp_path / "plan.json")
    participants = plan.get()
    Coordinator(participants, tmp_path, plan.recording)
    with silenced(), Workers(1) as crew:
        grid = InProcessGrid(make_client_app, 2, crew)
        for context in grid.contexts.values():
            context.node_config["plan"] = str(tmp_path / "plan.json")
        context = Context(1, 0, {}, RecordDict(), {"plan": str(tmp_path / "plan.json")})
        make_server_app()(grid, context)
        content = write_instruction(to_arrays(participants.first_weights()), 1, 1)
        reply = make_client_app()(Message(content, 2, MessageType.TRAIN), grid.contexts[FIRST_NODE + 1])
    assert read_client(reply.content) == 1
    assert (tmp_path / "final.safetensors").exists()


def test_an_error_of_ours_is_left_beside_the_plan(tmp_path: Path) -> None:
    Plan(SETTINGS, Recording(), tmp_path).write(tmp_path / "plan.json")
    context = Context(1, 0, {}, RecordDict(), {"plan": str(tmp_path / "plan.json")})
    with silenced(), Workers(1) as crew:
        grid = InProcessGrid(make_client_app, 2, crew)
        with pytest.raises(CheckpointError, match="no run to resume"):
            make_server_app()(grid, context)
    assert "no run to resume" in (tmp_path / ERROR).read_text()
