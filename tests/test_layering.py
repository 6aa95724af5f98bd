"""The architecture, checked on the syntax trees: a module imports only from rooms above its own."""

import ast
from pathlib import Path

import pytest

import gradveil

ROOT = Path(gradveil.__file__).parent
ROOMS = (
    "errors",
    "rng",
    "machine",
    "results",
    "journal",
    "metrics",
    "transforms",
    "losses",
    "types",
    "models",
    "data",
    "gradients",
    "privacy",
    "defences",
    "client",
    "attacks",
    "scores",
    "training",
    "workers",
    "capsule",
    "audit",
    "search",
    "federated",
    "reports",
    "experiments",
    "cli",
)
CONFINED = {
    "flwr": {"federated"},
    "ray": {"workers", "federated"},
    "matplotlib": {"reports", "experiments"},
    "typer": {"cli"},
    "rich": {"cli"},
}
FORBIDDEN = {"torchvision"}


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            # `from gradveil import data` names a room just as `import gradveil.data` does.
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def violations(room: str, names: set[str]) -> list[str]:
    """List what a module of `room` may not import."""
    found = []
    for name in sorted(names):
        package, _, rest = name.partition(".")
        target = rest.split(".")[0]
        if package == "gradveil" and target in ROOMS and target != room and ROOMS.index(target) > ROOMS.index(room):
            found.append(f"{name} stands below {room}")
        if room not in CONFINED.get(package, {room}):
            found.append(f"{package} belongs into {', '.join(sorted(CONFINED[package]))}")
        if package in FORBIDDEN:
            found.append(f"{package} is never used")
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_upwards(path: Path) -> None:
    assert room_of(path) in ROOMS, f"{room_of(path)} has no place in the layout"
    assert violations(room_of(path), imports_of(path)) == []


@pytest.mark.parametrize(
    ("room", "name"),
    [
        ("metrics", "gradveil.audit.run"),
        ("errors", "gradveil.rng"),
        ("audit", "matplotlib.pyplot"),
        ("training", "rich.table"),
        ("models", "torchvision.models"),
        ("attacks", "flwr.client"),
    ],
)
def test_a_violation_is_seen(room: str, name: str) -> None:
    assert len(violations(room, {name})) == 1
