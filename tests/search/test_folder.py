"""The folder of a search: one writer, the same settings to resume, and settings of earlier versions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.errors import OutputError, SettingsError
from gradveil.search import SearchResult, SearchSettings
from gradveil.search.folder import list_differences, only_writer, open_records, opened_folder, upgrade
from gradveil.search.settings import SEMI_TRAINED
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
    for overwrite in (False, True):
        with pytest.raises(OutputError, match="--resume"), opened_folder(tmp_path / "run", SMALL, False, overwrite):
            pass
    with opened_folder(tmp_path / "run", SMALL, True, False) as (journal, records):
        assert journal.read() == [records.header]


def test_a_second_search_is_kept_out(tmp_path: Path) -> None:
    with only_writer(tmp_path), pytest.raises(OutputError, match="another search"), only_writer(tmp_path):
        pass
    with only_writer(tmp_path):
        pass


def test_a_journal_of_an_earlier_version_is_resumed_if_the_loss_is_the_same(tmp_path: Path) -> None:
    """Earlier versions named a label smoothing, and scored by plain cross-entropy whatever it was."""
    for settings, refused in (
        (SearchSettings(training=SEMI_TRAINED), False),
        (SearchSettings(), True),
        (SearchSettings(training=None, weights="given"), False),
        (SearchSettings(training=None, weights="given", loss="cross-entropy:smoothing=0.1"), True),
    ):
        record = json.loads(json.dumps(settings.to_record()))
        del record["loss"]
        if settings.training is not None:
            del record["training"]["loss"]
            record["training"]["label_smoothing"] = 0.1 if refused else 0.0
        (tmp_path / "journal.jsonl").write_text(json.dumps({"study": record, "environment": {}}) + "\n")
        if refused:
            with pytest.raises(
                SettingsError, match=r"settings: loss was cross-entropy and is cross-entropy:smoothing=0.1\."
            ):
                open_records(tmp_path, settings)
        else:
            assert len(open_records(tmp_path, settings)[0].read()) == 1
        assert upgrade(record)["loss"] == "cross-entropy"


def test_differences_name_both_values() -> None:
    assert list_differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}, "d": 4}) == [
        "b.c was 2 and is 3",
        "d was None and is 4",
    ]
