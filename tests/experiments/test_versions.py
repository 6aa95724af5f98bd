"""One table shows one version of the audit."""

from gradveil.audit import AUDIT_VERSION, VERSIONS
from gradveil.experiments.versions import name_version, newest


def test_the_newest_version_of_a_journal_is_shown_alone() -> None:
    old, new = {"rows": 1}, {"rows": 2, "audit_version": 2}
    assert newest([old, new]) == [new]
    assert newest([old]) == [old]
    assert newest([]) == []


def test_a_table_names_its_version_and_what_that_means() -> None:
    assert name_version([{"rows": 1}]) == f"Measured by version 1 of the audit: {VERSIONS[1]}."
    assert name_version([{}, {"audit_version": 2}]) == ""


def test_the_present_version_is_explained() -> None:
    assert AUDIT_VERSION in VERSIONS
