"""One table shows one version, names it, and says who made its lines."""

from pathlib import Path
from typing import Any

import pytest

from gradveil.audit import AUDIT_VERSION, VERSIONS
from gradveil.errors import SettingsError
from gradveil.experiments.versions import (
    CHOICES,
    PRESENT,
    name_makers,
    name_versions,
    render_appendix,
    require_one_version,
    require_present_version,
    versions_of,
)
from gradveil.results import provenance

JOURNAL = Path("journal.jsonl")
OLD: dict[str, Any] = {"rows": []}


def test_the_first_versions_did_not_say() -> None:
    assert versions_of(OLD) == {"audit_version": 1, "image_choice": 1, "standard_version": None}
    assert versions_of({"study": {"standard_version": 5}})["standard_version"] == 5
    assert versions_of({"cell": {}, **PRESENT}) == PRESENT


@pytest.mark.parametrize("name", list(PRESENT))
def test_different_versions_are_not_mixed(name: str) -> None:
    other = {**PRESENT, name: 0}
    require_one_version([PRESENT, PRESENT], JOURNAL)
    with pytest.raises(SettingsError, match=f"journal.jsonl holds results of different versions.*{name} 0") as caught:
        require_one_version([PRESENT, other, other], JOURNAL)
    assert "2 lines of" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_journal_of_another_version_is_not_added_to() -> None:
    require_present_version([], JOURNAL)
    require_present_version([PRESENT], JOURNAL)
    with pytest.raises(SettingsError, match=r"audit_version 1, image_choice 1.*choose another folder with --out"):
        require_present_version([PRESENT, OLD], JOURNAL)


def test_a_table_names_its_versions_and_what_they_mean() -> None:
    text = name_versions([OLD])
    assert f"Audit version 1: {VERSIONS[1]}." in text
    assert f"Image choice 1: {CHOICES[1]}." in text
    assert "not recorded" in text
    assert AUDIT_VERSION in VERSIONS
    assert PRESENT["image_choice"] in CHOICES


def test_the_makers_of_the_lines_are_counted() -> None:
    made = {**PRESENT, "provenance": provenance()}
    first, second = name_makers([OLD, made, made])
    assert first == "- 1 lines: version, commit and machine were not recorded yet"
    assert second.startswith("- 2 lines: gradveil ")
    assert provenance()["processor"] in second
    assert render_appendix([OLD, OLD]).startswith("## Where these figures come from")
