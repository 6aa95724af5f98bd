"""The supervisor: it returns what all end with, or raises the one cause, and leaves no process."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gradveil.errors import GradveilError, InputError, SettingsError
from gradveil.federated.supervisor import NeighbourError, RoundEnd, Supervisor


@dataclass(frozen=True)
class Count:
    """Report two rounds, then end as `ends` says for this rank: with a value, an error or a signal."""

    ends: tuple[Any, ...]

    def __call__(self, rank: int, report: Callable[[RoundEnd], None]) -> Any:
        for number in (1, 2):
            report(RoundEnd(number, f"{rank}" if rank == 0 else None))
        end = self.ends[rank]
        if isinstance(end, signal.Signals):
            os.kill(os.getpid(), end)
        if end == "exit":
            os._exit(3)
        if end == "hang":
            time.sleep(1000)
        if isinstance(end, Exception):
            raise end
        return end


def run(*ends: Any, timeout: float = 60.0) -> tuple[list[Any], list[RoundEnd]]:
    seen: list[RoundEnd] = []
    values = Supervisor(Count(ends), len(ends), timeout, seen.append).run()
    return values, seen


@pytest.fixture(autouse=True)
def no_process_is_left() -> Any:
    yield
    assert multiprocessing.active_children() == []


def test_values_come_in_the_order_of_the_participants() -> None:
    values, seen = run("a", "b", "c")
    assert values == ["a", "b", "c"]
    assert len(seen) == 6
    assert [end.number for end in seen if end.result == "0"] == [1, 2]


LOST = NeighbourError("participant 1 lost participant 0: its connection closed")


@pytest.mark.parametrize(
    ("end", "kind", "message"),
    [
        (SettingsError("local batches of 9"), InputError, "local batches of 9"),
        (GradveilError("one line"), GradveilError, "one line"),
        (ZeroDivisionError("oops"), GradveilError, "participant 0 failed: ZeroDivisionError: oops"),
        (signal.SIGKILL, NeighbourError, "participant 0, in round 3, was killed by signal 9"),
        ("exit", NeighbourError, "participant 0, in round 3, ended with exit code 3"),
    ],
)
def test_the_cause_is_raised_not_what_follows_from_it(
    end: Any, kind: type[Exception], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with pytest.raises(kind, match=message) as cause:
        run(end, LOST)
    assert "\n" not in str(cause.value)
    assert str(LOST) in [record.getMessage() for record in caplog.records]


def test_without_a_cause_the_first_loss_is_raised() -> None:
    with pytest.raises(NeighbourError, match=r"participant 1 lost participant 0.*start the run again"):
        run("through", LOST)


def test_a_participant_that_is_silent_for_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradveil.federated.supervisor.GRACE_SECONDS", 0.5)
    started = time.monotonic()
    with pytest.raises(NeighbourError, match=r"participant 1, in round 3, did not answer within 1 s"):
        run("a", "hang", timeout=1.0)
    assert time.monotonic() - started < 60
