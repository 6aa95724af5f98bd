"""`--policy FILE.json`: read the policies that a search wrote."""

from pathlib import Path
from typing import Any

from gradveil.errors import DataError, PolicyError
from gradveil.results import read_sealed
from gradveil.transforms import from_record

PREFIX = "policy:"


def read_policy(text: str) -> str:
    """Return a policy as text; `FILE.json` is the hybrid that a search wrote there, `FILE.json#2` its second best."""
    name, mark, rank = text.partition("#")
    if not name.endswith(".json"):
        return text
    record = load_record(Path(name))
    if not mark:
        return format_policy(name, record.get("hybrid"))
    policies = record.get("policies")
    count = len(policies) if isinstance(policies, list) else 0
    if not (rank.isascii() and rank.isdigit() and 1 <= int(rank) <= count):
        raise PolicyError(f"policy '{text}': {name} has {count} policies; write {name}#1 to {name}#{count}")
    assert isinstance(policies, list)
    return format_policy(name, policies[int(rank) - 1])


def read_arm(text: str) -> str:
    """Replace each `policy:FILE.json` of an arm by the policy that the file holds."""
    return ",".join(
        PREFIX + read_policy(part.removeprefix(PREFIX)) if part.startswith(PREFIX) else part for part in text.split(",")
    )


def load_record(path: Path) -> dict[str, Any]:
    try:
        return read_sealed(path)
    except DataError as error:
        raise PolicyError(f"{error}, or write the policy itself") from error


def format_policy(name: str, entry: object) -> str:
    if not isinstance(entry, dict):
        raise PolicyError(f"{name} holds no such policy: give the policies.json of 'gradveil search'")
    return str(from_record(entry))
