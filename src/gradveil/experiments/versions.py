"""Journals that several versions of the audit wrote to: one table shows one version, and names it."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradveil.audit import VERSIONS

KEY = "audit_version"


def version_of(entry: Mapping[str, Any]) -> int:
    """Return the version that wrote a line; the first one did not say."""
    return int(entry.get(KEY, 1))


def newest(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Keep the lines of the newest version in the journal."""
    latest = max(map(version_of, entries), default=1)
    return [entry for entry in entries if version_of(entry) == latest]


def name_version(entries: Sequence[Mapping[str, Any]]) -> str:
    """Say which version of the audit a table is of; it must be one."""
    versions = {version_of(entry) for entry in entries}
    if len(versions) != 1:
        return ""
    (version,) = versions
    return f"Measured by version {version} of the audit: {VERSIONS[version]}."
