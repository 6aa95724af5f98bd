"""Rounds of the same images, attacked together and scored once."""

from dataclasses import replace

import pytest

from gradveil.attacks import ATTACKS, find_attack
from gradveil.audit import CapsuleAudit
from gradveil.audit.sightings import attack_sightings, group_clients
from gradveil.errors import SettingsError
from gradveil.rounds import Captured
from gradveil.types import LocalTraining
from tests.audit.test_capsules import capture, small_data


def see(client: int, number: int, arm: str = "gaussian:1e-2,no-base") -> Captured:
    """Let a client release an update of its image in a round."""
    captured = capture(arm, client, LocalTraining())
    return replace(captured, round=replace(captured.round, client=client, phase=f"round-{number}"))


def seen(*pairs: tuple[int, int]) -> dict[str, Captured]:
    return {f"{number}-{client}": see(client, number) for number, client in pairs}


def make_audit(captured: dict[str, Captured], attack: str = "fast") -> CapsuleAudit:
    return CapsuleAudit(
        {name: one.round for name, one in captured.items()},
        {name: one.truths for name, one in captured.items()},
        small_data(),
        {attack: find_attack(attack).with_steps(3)},
        together=True,
    )


def test_rounds_of_a_client_are_one_and_clients_seen_alike_stand_side_by_side() -> None:
    captured = seen((1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
    rounds = {name: one.round for name, one in captured.items()}
    tasks = {one.phase: one.task(None, "cpu") for one in rounds.values()}
    assert group_clients(rounds, tasks, "cpu") == [[["1-0", "2-0"], ["1-1", "2-1"]], [["2-2"]]]


def test_other_labels_are_other_images() -> None:
    data = small_data()
    other = next(place for place in range(1, 20) if data.train.labels[place] != data.train.labels[0])
    captured = {"1-0": see(0, 1), "2-0": see(other, 2)}
    rounds = {name: replace(one.round, client=0) for name, one in captured.items()}
    tasks = {one.phase: one.task(None, "cpu") for one in rounds.values()}
    assert group_clients(rounds, tasks, "cpu") == [[["1-0"]], [["2-0"]]]


def test_each_image_is_scored_once() -> None:
    report = make_audit(seen((1, 0), (1, 1), (2, 0), (2, 1))).run()
    assert [(row.phase, row.image) for row in report.rows] == [("round-1", 0), ("round-1", 1)]
    assert report.settings.images == 2
    assert "4 rounds were attacked together: 2 sets of images" in report.notices


def test_what_lacks_its_needs_is_refused_as_a_row() -> None:
    report = make_audit(seen((1, 0), (2, 0)), "policy-aware").run()
    assert [row.status for row in report.rows] == ["refused"]


def test_an_attack_of_one_update_at_a_time_is_refused() -> None:
    rounds = {name: one.round for name, one in seen((1, 0)).items()}
    with pytest.raises(SettingsError, match="one update at a time"):
        attack_sightings(
            rounds, ATTACKS["standard"], "standard", public=small_data().train.batch(), seed=0, device="cpu"
        )
