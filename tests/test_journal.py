"""The journal: torn, damaged, long, and on a disk that is full."""

import subprocess
import sys
from pathlib import Path

import pytest

from gradveil.errors import OutputError
from gradveil.journal import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


def test_a_torn_line_is_forgotten_and_a_damaged_one_named(journal: Journal) -> None:
    journal.append({"a": 1})
    with journal.path.open("ab") as stream:
        stream.write(b'{"a": 2, "b"')
    assert journal.read() == [{"a": 1}]
    journal.append({"a": 3})
    assert journal.read() == [{"a": 1}, {"a": 3}]
    journal.path.write_bytes(b"nonsense\n")
    with pytest.raises(OutputError, match="line 1"):
        journal.read()


def test_a_changed_digit_is_seen_in_any_line(journal: Journal) -> None:
    for number in range(3):
        journal.append({"score": 0.5 + number, "places": {1: "a", 10: "b", 2: "c"}})
    whole = journal.path.read_bytes()
    assert journal.read()[2] == {"score": 2.5, "places": {"1": "a", "10": "b", "2": "c"}}
    for number in range(3):
        journal.path.write_bytes(whole.replace(f"{number}.5".encode(), f"{number}.6".encode(), 1))
        with pytest.raises(OutputError, match=rf"journal\.jsonl, line {number + 1}, was changed or damaged"):
            journal.read()


def test_every_flipped_bit_is_seen_or_makes_no_difference(journal: Journal) -> None:
    journal.append({"trial": {"seed": 3, "name": "é"}, "score": -0.25})
    journal.append({"trial": {"seed": 4, "name": "b"}, "score": None})
    entries, whole = journal.read(), journal.path.read_bytes()
    refusals = []
    for place in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        journal.path.write_bytes(damaged)
        try:
            # A last line without its end counts as never written, and its work is done again.
            assert journal.read() in (entries, entries[:1])
        except OutputError as error:
            refusals.append(str(error))
    assert len(refusals) > 0.98 * 8 * len(whole)
    assert all("journal.jsonl, line " in text and "\n" not in text for text in refusals)


@pytest.mark.parametrize("line", [b"5", b"null", b"[]", b"{}", b'"a"', b"[" * 100_000, b"\xff", b'{"a": 1e999}', b""])
def test_a_line_that_is_no_entry_is_one_clear_line(journal: Journal, line: bytes) -> None:
    journal.append({"a": 1})
    with journal.path.open("ab") as stream:
        stream.write(line + b"\n")
    with pytest.raises(OutputError, match=r"journal\.jsonl, line 2, ") as caught:
        journal.read()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_line_without_a_seal_is_refused_with_what_to_do(journal: Journal) -> None:
    journal.path.write_text('{"a": 1}\n')
    with pytest.raises(OutputError, match=r"line 1, has no seal: .*scripts/seal_files\.py"):
        journal.read()


@pytest.mark.parametrize("torn", [b"x", b"x" * 65535, b"x" * 65536, b"x" * 200_000])
@pytest.mark.parametrize("before", [0, 1])
def test_a_torn_line_of_any_length_goes(journal: Journal, torn: bytes, before: int) -> None:
    for number in range(before):
        journal.append({"n": number})
    with journal.path.open("ab") as stream:
        stream.write(torn)
    journal.append({"n": "last"})
    assert journal.read() == [{"n": number} for number in range(before)] + [{"n": "last"}]


def bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(lines[0].removeprefix("rchar: "))


def test_appending_does_not_read_what_is_there(journal: Journal) -> None:
    journal.path.write_bytes(b'{"a": 1}\n' * 500_000)
    before = bytes_read()
    for _ in range(10):
        journal.append({"a": 2})
    assert bytes_read() - before < 100_000


def test_numbers_come_back_to_the_bit(journal: Journal) -> None:
    values = [0.1 + 0.2, 1 / 3, 1e-300, -0.0]
    journal.append({"values": values})
    assert [value.hex() for value in journal.read()[0]["values"]] == [value.hex() for value in values]
    with pytest.raises(ValueError, match="JSON"):
        journal.append({"value": float("nan")})
    assert len(journal.read()) == 1


FILL = """
import resource, sys
from pathlib import Path
from gradveil.errors import OutputError
from gradveil.journal import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
journal = Journal(Path(sys.argv[1]))
written = 0
try:
    while True:
        journal.append({"number": written, "padding": "x" * 90})
        written += 1
except OutputError as error:
    print(written, error)
"""


def test_a_full_disk_ends_in_one_line_and_leaves_whole_lines(journal: Journal) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FILL, str(journal.path)], capture_output=True, text=True, check=True, timeout=60
    )
    written, message = ended.stdout.split(" ", 1)
    assert "make room" in message
    assert message.count("\n") == 1
    assert journal.path.read_bytes().endswith(b"\n")
    assert [entry["number"] for entry in journal.read()] == list(range(int(written)))
    assert int(written) > 0
    journal.append({"number": int(written)})
    assert len(journal.read()) == int(written) + 1


def test_a_device_without_room_is_named() -> None:
    with pytest.raises(OutputError, match="/dev/full"):
        Journal(Path("/dev/full")).append({"a": 1})
