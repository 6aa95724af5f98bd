"""Finished jobs on disk: kept as they end, sealed, and only for the audit that began them."""

import resource
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from gradveil.audit.kept import (
    Form,
    KeptWork,
    Tensors,
    begin,
    discard_work,
    is_unfinished,
    only_audit,
    opened_work,
    read_work,
)
from gradveil.errors import DataError, OutputError, SettingsError
from gradveil.results import seal, to_json, write_file
from gradveil.workers import Report, Workers

ASKED = {"settings": {"images": 8, "rule": {"epsilon": 1.0}}, "command_line": "gradveil audit"}


@dataclass(frozen=True)
class Square:
    """Square a number, and write down that it was asked."""

    number: int
    log: Path

    def run(self, report: Report) -> dict[str, int]:
        if self.number < 0:
            raise SettingsError("negative")
        with self.log.open("a") as stream:
            stream.write(f"{self.number}\n")
        report(1, 1)
        return {"square": self.number**2}


def pack(result: dict[str, int]) -> tuple[Tensors, dict[str, int]]:
    return {"twice": torch.tensor([result["square"]] * 2)}, result


def unpack(tensors: Tensors, content: dict[str, int]) -> dict[str, int]:
    assert tensors["twice"].tolist() == [content["square"]] * 2
    return content


FORM = Form(pack, unpack)


def run(kept: KeptWork, *numbers: int) -> list[int]:
    jobs = {f"square of {number}/:*": Square(number, kept.folder / "log") for number in numbers}
    with Workers(1) as crew:
        return [result["square"] for result in kept.run(crew, jobs, FORM, lambda *_: None)]


def asked_for(kept: KeptWork) -> list[str]:
    return (kept.folder / "log").read_text().split()


def test_what_is_kept_is_not_run_again_and_results_keep_their_order(tmp_path: Path) -> None:
    kept = KeptWork(tmp_path)
    assert run(kept, 3, 1) == [9, 1]
    assert run(kept, 1, 2, 3) == [1, 4, 9]
    assert asked_for(kept) == ["3", "1", "2"]


def test_a_job_is_kept_even_if_a_later_one_fails(tmp_path: Path) -> None:
    kept = KeptWork(tmp_path)
    with pytest.raises(SettingsError):
        run(kept, 5, -1)
    assert run(kept, 5) == [25]
    assert asked_for(kept) == ["5"]


def test_only_the_owner_can_read_what_is_kept(tmp_path: Path) -> None:
    kept = KeptWork(tmp_path)
    run(kept, 3)
    assert [path.stat().st_mode & 0o777 for path in tmp_path.glob("*.safetensors")] == [0o600]


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_damaged_file_is_one_clear_line(place: int, tmp_path: Path) -> None:
    kept = KeptWork(tmp_path)
    run(kept, 3)
    (path,) = tmp_path.glob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="remove it, and its job is run again") as error:
        run(kept, 3)
    assert "\n" not in str(error.value)
    path.unlink()
    assert run(kept, 3) == [9]


def test_the_work_of_another_job_is_refused(tmp_path: Path) -> None:
    kept = KeptWork(tmp_path)
    for name in ("one", "two"):
        kept.write(name, {}, {"square": 4})
    kept.path_of("one").write_bytes(kept.path_of("two").read_bytes())
    with pytest.raises(DataError, match="is of the job 'two', not of 'one': remove it"):
        kept.read("one")


def test_settings_that_are_none_are_refused(tmp_path: Path) -> None:
    """Another sealed record in their place, as of a checkpoint."""
    (tmp_path / "work").mkdir()
    write_file(tmp_path / "work" / "settings.json", to_json(seal({"schema": 1, "made": {}})))
    with pytest.raises(DataError, match=r"settings\.json does not say what the audit was asked"):
        read_work(tmp_path)


def test_the_work_goes_when_the_block_ends_and_stays_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError), opened_work(tmp_path, ASKED, False) as kept:
        run(kept, 5, -1)
    assert is_unfinished(tmp_path)
    assert read_work(tmp_path)["settings"] == ASKED["settings"]
    with opened_work(tmp_path, ASKED, True) as kept:
        assert run(kept, 5, 6) == [25, 36]
        assert asked_for(kept) == ["5", "6"]
    assert list(tmp_path.iterdir()) == []


def test_after_an_error_before_the_first_job_nothing_stays(tmp_path: Path) -> None:
    with pytest.raises(SettingsError), opened_work(tmp_path, ASKED, False) as kept:
        run(kept, -1)
    assert list(tmp_path.iterdir()) == []


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError), opened_work(tmp_path, ASKED, False) as kept:
        run(kept, 5, -1)
    other = {"settings": {"images": 9, "rule": {"epsilon": 1.0}}, "command_line": "another"}
    with (
        pytest.raises(SettingsError, match=r"settings\.images was 8 and is 9\. Resume"),
        opened_work(tmp_path, other, True),
    ):
        pass
    assert is_unfinished(tmp_path)


def test_damaged_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError), opened_work(tmp_path, ASKED, False) as kept:
        run(kept, 5, -1)
    path = tmp_path / "work" / "settings.json"
    path.write_text(path.read_text().replace("8", "9", 1))
    with pytest.raises(DataError, match="changed or damaged"):
        read_work(tmp_path)


def test_two_audits_cannot_share_a_folder(tmp_path: Path) -> None:
    with opened_work(tmp_path, ASKED, False):
        with pytest.raises(OutputError, match="another audit has begun"):
            begin(tmp_path / "work")
        with pytest.raises(OutputError, match="another audit is at work"), opened_work(tmp_path, ASKED, True):
            pass
        with pytest.raises(OutputError, match="another audit is at work"):
            discard_work(tmp_path)


def test_without_room_for_the_settings_nothing_stays(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OutputError, match=r"settings\.json"), opened_work(tmp_path, ASKED, False):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_work_that_was_killed_before_its_settings_is_begun_again(tmp_path: Path) -> None:
    begin(tmp_path / "work")
    (tmp_path / "work" / "lock").touch()
    with opened_work(tmp_path, ASKED, False) as kept:
        assert run(kept, 5) == [25]


def test_unfinished_work_can_be_thrown_away(tmp_path: Path) -> None:
    begin(tmp_path / "work")
    with only_audit(tmp_path / "work"):
        pass
    discard_work(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no unfinished audit to resume"):
        read_work(tmp_path)
