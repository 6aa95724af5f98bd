"""A few inputs of every class; `python -m tests.faults run FOLDER` tries many more."""

import time
from pathlib import Path

import pytest

from gradveil.errors import DataError
from tests.faults import fuzz as harness
from tests.faults.fuzz import fuzz
from tests.faults.readers import Draw, Reader, readers

EXAMPLES = 8


@pytest.mark.parametrize("reader", readers(), ids=lambda reader: reader.name)
def test_every_malformed_input_is_read_or_refused(reader: Reader) -> None:
    outcome = fuzz(reader, EXAMPLES, start=0)
    assert outcome.faults == []
    assert outcome.tried == outcome.read + outcome.refused > 0


class Faulty(Reader):
    """Refuses, fails and hangs in turn."""

    name = "faulty"
    calls = 0

    def attempt(self, draw: Draw, folder: Path) -> None:  # noqa: ARG002
        self.calls += 1
        if self.calls == 1:
            raise DataError("refused")
        if self.calls == 2:
            raise KeyError("rows")
        if self.calls == 3:
            time.sleep(5)


def test_the_harness_sees_failures_and_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "PATIENCE", 0.2)
    reader = Faulty()
    monkeypatch.setattr(reader, "attempt", every_time(reader))
    outcome = fuzz(reader, 4, start=0)
    assert (outcome.refused, outcome.failed) == (1, 2)
    assert "KeyError at the harness: 'rows'" in outcome.faults
    assert any(fault.startswith("HangError") for fault in outcome.faults)


def every_time(reader: Faulty):  # type: ignore[no-untyped-def]
    """Draw something each time, because Hypothesis never repeats an input."""
    from hypothesis import strategies as st

    attempt = reader.attempt

    def drawn(draw: Draw, folder: Path) -> None:
        draw(st.integers())
        attempt(draw, folder)

    return drawn
