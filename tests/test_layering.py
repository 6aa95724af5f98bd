"""The architecture, checked on the syntax trees.

A module imports only from rooms above its own, and enters another room through its `__init__`. An import inside a
function counts like any other.
"""

import ast
from pathlib import Path

import pytest

import gradveil

ROOT = Path(gradveil.__file__).parent
ROOMS = (
    "errors",
    "files",
    "own_code",
    "stops",
    "rng",
    "machine",
    "results",
    "folders",
    "journal",
    "tensor_files",
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
    "rounds",
    "attacks",
    "scores",
    "training",
    "inspection",
    "workers",
    "study",
    "capsule",
    "audit",
    "search",
    "federated",
    "reports",
    "experiments",
    "pytest_plugin",
    "cli",
    "__main__",
)
CONFINED = {
    "flwr": {"federated"},
    "ray": {"workers", "federated"},
    "matplotlib": {"reports", "experiments"},
    "click": {"cli"},
    "typer": {"cli"},
    "rich": {"cli"},
}
FORBIDDEN = {"torchvision"}
ALLOWED_INNER: set[tuple[str, str]] = {
    # Each experiment is a module of its own; the command takes what it needs of each.
    ("cli/batches.py", "experiments.batch_tables"),
    ("cli/batches.py", "experiments.batches"),
    ("cli/batches.py", "experiments.versions"),
    ("cli/policies_hide.py", "experiments.hide_tables"),
    ("cli/policies_hide.py", "experiments.policies_hide"),
    ("cli/reproduce.py", "experiments.attack_cells"),
    ("cli/reproduce.py", "experiments.attack_comparisons"),
    ("cli/reproduce.py", "experiments.attack_sheets"),
    ("cli/reproduce.py", "experiments.attack_tables"),
    ("cli/reproduce.py", "experiments.attacks"),
    ("cli/reproduce.py", "experiments.defence_tables"),
    ("cli/reproduce.py", "experiments.defences"),
    ("cli/reproduce.py", "experiments.score_study"),
    ("cli/reproduce.py", "experiments.score_tables"),
    ("cli/reproduce.py", "experiments.versions"),
    ("cli/single_transforms.py", "experiments.single_transforms"),
    ("cli/study_folders.py", "experiments.versions"),
}
"""Imports from inside another room that still exist: (importing module, imported module). Nothing is added here."""


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


def exported(room: str) -> set[str]:
    """List what the `__init__` of a room exports; a room that is one module has none."""
    path = ROOT / room / "__init__.py"
    for node in ast.parse(path.read_text()).body if path.exists() else ():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def inner_modules(room: str, names: set[str]) -> set[str]:
    """List the modules inside other rooms that a module of `room` imports from."""
    inner = set()
    for name in names:
        package, *parts = name.split(".")
        if package != "gradveil" or len(parts) < 2 or parts[0] == room:
            continue
        target, module, *rest = parts
        # `from gradveil.metrics import psnr` is the exported function, not the module that defines it.
        if (ROOT / target / f"{module}.py").exists() and (rest or module not in exported(target)):
            inner.add(f"{target}.{module}")
    return inner


def violations(room: str, names: set[str]) -> list[str]:
    """List what a module of `room` may not import."""
    problems = []
    for name in sorted(names):
        package, _, rest = name.partition(".")
        target = rest.split(".")[0]
        if package == "gradveil" and target in ROOMS and target != room and ROOMS.index(target) > ROOMS.index(room):
            problems.append(f"{name} stands below {room}")
        if room not in CONFINED.get(package, {room}):
            problems.append(f"{package} belongs into {', '.join(sorted(CONFINED[package]))}")
        if package in FORBIDDEN:
            problems.append(f"{package} is never used")
    return problems


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


def test_every_way_to_import_is_seen(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        "import gradveil.audit.run as run\n"
        "def work():\n    from gradveil.data.npz import ArrayFile\n    from gradveil import models\n"
    )
    expected = {"gradveil.audit.run", "gradveil.data.npz.ArrayFile", "gradveil.models"}
    assert imports_of(tmp_path / "module.py") == expected


def list_inner_imports() -> set[tuple[str, str]]:
    """List who imports what from inside another room."""
    return {
        (str(path.relative_to(ROOT)), inner)
        for path in modules()
        for inner in inner_modules(room_of(path), imports_of(path))
    }


def test_rooms_are_entered_through_their_init() -> None:
    assert sorted(list_inner_imports() - ALLOWED_INNER) == [], "import these names from the room, and export them there"


def test_the_allowance_only_shrinks() -> None:
    assert sorted(ALLOWED_INNER - list_inner_imports()) == [], "these imports are gone: take them off the list"


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("gradveil.data.npz.ArrayFile", {"data.npz"}),
        ("gradveil.data.npz", {"data.npz"}),
        ("gradveil.data.DataSet", set()),
        ("gradveil.data", set()),
        ("gradveil.metrics.psnr", set()),
        ("gradveil.metrics.psnr.CEILING", {"metrics.psnr"}),
        ("gradveil.errors.DataError", set()),
        ("torch.nn.functional", set()),
    ],
)
def test_an_inner_import_is_seen(name: str, inner: set[str]) -> None:
    assert inner_modules("cli", {name}) == inner
    assert inner_modules("data", {name}) == {each for each in inner if not each.startswith("data.")}
