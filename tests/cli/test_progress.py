import io

from rich.console import Console

from gradveil.cli.progress import progress_bar


def test_each_task_gets_a_bar_that_goes_when_the_block_ends() -> None:
    shown = io.StringIO()
    with progress_bar(Console(file=shown, force_terminal=True, width=120)) as report:
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
    with progress_bar(Console(file=shown, force_terminal=True, width=120), in_bytes=True) as report:
        report("file.gz", 2_000_000, 4_000_000)
    assert "2.0/4.0 MB" in shown.getvalue()


def test_nothing_is_shown_without_a_terminal() -> None:
    shown = io.StringIO()
    with progress_bar(Console(file=shown)) as report:
        report("reading", 1, 4)
    assert shown.getvalue().strip() == ""
