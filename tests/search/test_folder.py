"""The folder of a search: one writer, the same settings to resume, and settings of earlier versions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.errors import OutputError, SettingsError
from gradveil.journal import Journal
from gradveil.search import SearchResult, SearchSettings
from gradveil.search.folder import list_differences, open_records, opened_folder
from tests.search.runs import SMALL, Runner, read_lines


def test_other_settings_are_refused_with_the_difference(run: Runner, whole: tuple[Path, SearchResult]) -> None:
    before = read_lines(whole[0])
    with pytest.raises(SettingsError, match=r"keep was 4 and is 5; seed was 0 and is 1"):
        run(whole[0], replace(SMALL, keep=5, seed=1), resume=True)
    assert read_lines(whole[0]) == before


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="without --resume"), opened_folder(tmp_path / "new", SMALL, True, False):
        pass
    assert not (tmp_path / "new").exists()


def test_an_unfinished_search_is_not_begun_again(tmp_path: Path) -> None:
    with opened_folder(tmp_path / "run", SMALL, False, False):
        pass
    message = "go on with --resume .*, start again with --overwrite"
    with pytest.raises(OutputError, match=message), opened_folder(tmp_path / "run", SMALL, False, False):
        pass
    with opened_folder(tmp_path / "run", SMALL, True, False) as (journal, records):
        assert journal.read() == [records.header]
    other = replace(SMALL, seed=1)
    with opened_folder(tmp_path / "run", other, False, True) as (journal, records):
        assert journal.read() == [records.header]
        assert records.header["study"]["seed"] == 1


@pytest.mark.parametrize(("resume", "overwrite"), [(True, False), (False, True)])
def test_a_folder_with_an_empty_journal_has_a_way_on(resume: bool, overwrite: bool, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    with opened_folder(tmp_path, SMALL, resume, overwrite) as (journal, _):
        assert len(journal.read()) == 1


def test_a_second_search_is_kept_out(tmp_path: Path) -> None:
    with opened_folder(tmp_path / "run", SMALL, False, False):
        second = opened_folder(tmp_path / "run", SMALL, True, False)
        with pytest.raises(OutputError, match="another command is at work"), second:
            pass
    with opened_folder(tmp_path / "run", SMALL, True, False) as (journal, _):
        assert len(journal.read()) == 1


def test_a_search_on_images_that_were_chosen_by_position_is_not_resumed(tmp_path: Path) -> None:
    settings = SearchSettings()
    header = {"study": json.loads(json.dumps(settings.to_record())), "environment": {}}
    Journal(tmp_path / "journal.jsonl").append(header)
    with pytest.raises(SettingsError, match="chose its images differently: start another in a new folder"):
        open_records(tmp_path, settings)
    (tmp_path / "journal.jsonl").unlink()
    assert open_records(tmp_path, settings)[1].header["image_choice"] == 2
    with pytest.raises(SettingsError, match="seed was 0 and is 1"):
        open_records(tmp_path, SearchSettings(seed=1))


def test_differences_name_both_values() -> None:
    assert list_differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}, "d": 4}) == [
        "b.c was 2 and is 3",
        "d was None and is 4",
    ]
