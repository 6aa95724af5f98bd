import io
import time

import pytest

from gradveil.cli import progress
from gradveil.cli.options import PlainConsole
from gradveil.cli.progress import Lines, progress_bar, progress_lines, single_bar


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_task_gets_a_bar_that_goes_when_the_block_ends() -> None:
    shown = io.StringIO()
    with progress_bar(PlainConsole(file=shown, force_terminal=True, width=120)) as report:
        report("reading", 1, 4)
        report("decoding", 3, 4)
        report("reading", 4, 4)
    text = shown.getvalue()
    assert "reading" in text
    assert "decoding" in text
    assert "4/4" in text
    assert text.endswith("\x1b[1A\x1b[2K")


def test_bytes_are_shown_with_their_unit() -> None:
    shown = io.StringIO()
    with progress_bar(PlainConsole(file=shown, force_terminal=True, width=120), in_bytes=True) as report:
        report("file.gz", 2_000_000, 4_000_000)
    assert "2.0/4.0 MB" in shown.getvalue()


def test_one_bar_whose_words_change() -> None:
    shown = io.StringIO()
    with single_bar(PlainConsole(file=shown, force_terminal=True, width=120)) as report:
        report("round 1", 1, 4)
        report("round 2, [b]", 2, 4)
    assert "round 2, [b]" in shown.getvalue()


def test_without_a_terminal_a_line_is_due_every_half_minute() -> None:
    clock = FakeClock()
    written: list[str] = []
    lines = Lines(written.append, clock)
    lines.report("attacking", 10, 100)
    assert written == []
    for second in range(1, 121):
        clock.now = 100.0 + second
        if second == 20:
            lines.report("attacking", 20, 100)
        lines.tick()
    assert len(written) == 4
    assert written[0] == "gradveil: attacking, 20%, 30 s so far, about 4 min left of this step"
    assert written[3].startswith("gradveil: attacking, 20%, 2 min so far")


def test_a_resumed_run_counts_from_where_it_is() -> None:
    clock = FakeClock()
    written: list[str] = []
    lines = Lines(written.append, clock)
    lines.report("epoch 9", 90, 100)
    clock.now += 30
    lines.report("epoch 10", 95, 100)
    assert written == ["gradveil: epoch 10, 95%, 30 s so far, about 30 s left of this step"]
    clock.now += 30
    lines.report("testing", 0, 4)
    assert written[1:] == ["gradveil: testing, 0%, 60 s so far"]


def test_lines_come_though_nothing_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "CHECK", 0.01)
    monkeypatch.setattr(Lines.__init__, "__defaults__", (time.monotonic, 0.05))
    shown = io.StringIO()
    with progress_lines(PlainConsole(file=shown)):
        time.sleep(0.3)
    printed = capsys.readouterr()
    assert printed.err.startswith("gradveil: starting, under 1 s so far\n")
    assert (printed.out, shown.getvalue()) == ("", "")
    mute = PlainConsole(file=shown)
    mute.mute = True
    with progress_lines(mute):
        time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_a_quick_command_prints_nothing_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    shown = io.StringIO()
    with progress_bar(PlainConsole(file=shown)) as report:
        report("reading", 1, 4)
    assert shown.getvalue() == ""
    assert capsys.readouterr().err == ""
