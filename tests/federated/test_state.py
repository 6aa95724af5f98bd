"""The state of a run: exact, sealed, and of that run only."""

from pathlib import Path

import pytest

from gradveil.errors import CheckpointError, SettingsError
from gradveil.federated.server import Server
from gradveil.federated.state import FILE, is_unfinished, load_state, save_state
from tests.federated.scenes import make_participants, same

MADE = {"model": "lenet", "rounds": 3, "shares": (1, 2)}


def one_round() -> Server:
    participants = make_participants(batch_size=10)
    server = Server(participants, 3)
    server.apply([participants.client_round(0, 1, 3, server.weights()).update], 1)
    return server


def test_weights_and_momenta_come_back_to_the_bit(tmp_path: Path) -> None:
    first, second = one_round(), Server(make_participants(), 3)
    save_state(tmp_path, first, MADE, 1, 2.5)
    assert load_state(tmp_path, second, MADE) == (1, 2.5)
    assert same(first.weights(), second.weights())
    update = make_participants().client_round(1, 2, 3, first.weights()).update
    for server in (first, second):
        server.apply([update], 2)
    assert same(first.weights(), second.weights())


def test_a_changed_byte_is_seen(tmp_path: Path) -> None:
    save_state(tmp_path, one_round(), MADE, 1, 2.5)
    content = bytearray((tmp_path / FILE).read_bytes())
    content[-5] ^= 1
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(CheckpointError, match="SHA-256"):
        load_state(tmp_path, Server(make_participants(), 3), MADE)


def test_another_run_is_refused(tmp_path: Path) -> None:
    save_state(tmp_path, one_round(), MADE, 1, 2.5)
    with pytest.raises(SettingsError, match="has rounds 3, not 4"):
        load_state(tmp_path, Server(make_participants(), 3), {**MADE, "rounds": 4})


def test_a_folder_without_a_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no run to resume"):
        load_state(tmp_path, Server(make_participants(), 3), MADE)
    (tmp_path / FILE).write_bytes(b"garbage")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_state(tmp_path, Server(make_participants(), 3), MADE)


def test_a_run_is_unfinished_until_its_record_is_there(tmp_path: Path) -> None:
    assert not is_unfinished(tmp_path)
    save_state(tmp_path, one_round(), MADE, 1, 2.5)
    assert is_unfinished(tmp_path)
    (tmp_path / "federate.json").write_text("{}")
    assert not is_unfinished(tmp_path)
