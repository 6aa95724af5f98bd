"""Journals that several versions wrote to: a table shows results of one version, and names it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradveil.attacks import STANDARD_VERSION
from gradveil.audit import AUDIT_VERSION, VERSIONS
from gradveil.data import IMAGE_CHOICE
from gradveil.errors import SettingsError
from gradveil.study import PROVENANCE

Entry = Mapping[str, Any]
KEY = "audit_version"
CHOICE = "image_choice"
STANDARD = "standard_version"
PRESENT = {KEY: AUDIT_VERSION, CHOICE: IMAGE_CHOICE, STANDARD: STANDARD_VERSION}
"""What today's code writes into every line."""
CHOICES = {
    1: "images were chosen by position in the test split, or at random without regard to their classes",
    2: "images are a random choice that is balanced over the classes",
}


def version_of(entry: Entry) -> int:
    """Return the version of the audit that wrote a line; the first one did not say."""
    return int(entry.get(KEY, 1))


def choice_of(entry: Entry) -> int:
    """Return the version of the choice of images; the first one did not say."""
    return int(entry.get(CHOICE, 1))


def versions_of(entry: Entry) -> dict[str, int | None]:
    """Return every version that a line's results depend on; some lines keep them in the field `study`."""
    fields = {**entry, **entry.get("study", {})}
    return {KEY: version_of(fields), CHOICE: choice_of(fields), STANDARD: fields.get(STANDARD)}


def require_one_version(entries: Sequence[Entry], journal: Path) -> None:
    """Refuse lines of several versions: their figures are not comparable."""
    counts = Counter(write_versions(versions_of(entry)) for entry in entries)
    if len(counts) > 1:
        found = "; ".join(f"{count} lines of {text}" for text, count in counts.items())
        raise SettingsError(
            f"{journal} holds results of different versions ({found}): a table shows one, so move the others to a "
            "folder of their own"
        )


def require_present_version(
    entries: Sequence[Entry], journal: Path, versions: Mapping[str, int | None] = PRESENT
) -> None:
    """Refuse to add to a journal of another version than `versions`, those of what the study runs."""
    present = write_versions(versions)
    others = dict.fromkeys(write_versions(versions_of(entry)) for entry in entries)
    other = next((text for text in others if text != present), None)
    if other is not None:
        raise SettingsError(
            f"{journal} holds results of {other}, and this is {present}: choose another folder with --out, or write "
            "the table of what is there with --table"
        )


def write_versions(versions: Mapping[str, int | None]) -> str:
    return ", ".join(f"{name} {'unknown' if value is None else value}" for name, value in versions.items())


def name_versions(entries: Sequence[Entry]) -> str:
    """Say which versions a table is of, and what they mean; all lines must have the same."""
    versions = versions_of(entries[0])
    audit, choice, standard = versions[KEY], versions[CHOICE], versions[STANDARD]
    assert audit is not None
    assert choice is not None
    known = "its version was not recorded" if standard is None else f"version {standard}"
    return f"Audit version {audit}: {VERSIONS[audit]}. Image choice {choice}: {CHOICES[choice]}. `standard`: {known}."


def name_makers(entries: Sequence[Entry]) -> list[str]:
    """List which software and machines made the lines, and how many of them."""
    counts = Counter(write_maker(entry.get(PROVENANCE)) for entry in entries)
    return [f"- {count} lines: {maker}" for maker, count in counts.items()]


def render_appendix(entries: Sequence[Entry]) -> str:
    """Write where a page's figures come from."""
    return "\n".join(["## Where these figures come from", "", name_versions(entries), "", *name_makers(entries), ""])


def write_maker(made: Mapping[str, Any] | None) -> str:
    if made is None:
        return "version, commit and machine were not recorded yet"
    commit = made["commit"] or "unknown"
    machine = f"{made['cores']} cores of {made['processor']}, torch {made['torch']}"
    return f"gradveil {made['gradveil']}, commit {commit}, {machine}"
