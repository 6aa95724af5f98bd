"""What is exported exists and is documented."""

import importlib
import inspect
import subprocess
import sys

import pytest

from gradveil import reports

PACKAGES = (
    "attacks",
    "audit",
    "client",
    "data",
    "defences",
    "federated",
    "gradients",
    "metrics",
    "models",
    "privacy",
    "reports",
    "scores",
    "search",
    "training",
    "transforms",
    "workers",
)


@pytest.mark.parametrize("name", PACKAGES)
def test_exports_exist_and_are_documented(name: str) -> None:
    package = importlib.import_module(f"gradveil.{name}")
    assert package.__doc__
    assert len(set(package.__all__)) == len(package.__all__)
    for export in package.__all__:
        member = getattr(package, export)
        if inspect.isclass(member) or inspect.isfunction(member):
            assert member.__doc__, f"gradveil.{name}.{export} has no docstring"
            assert member.__module__.startswith("gradveil.")


def test_the_package_itself_is_light() -> None:
    """Importing gradveil imports nothing outside the standard library, so that the command line starts fast."""
    code = "import sys; before = set(sys.modules); import gradveil; print(*sorted(set(sys.modules) - before))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in ended.stdout.split()} - sys.stdlib_module_names == {"gradveil"}


def test_reports_list_the_names_that_their_modules_have() -> None:
    assert sorted(name for names in reports.MODULES.values() for name in names) == sorted(reports.__all__)
    with pytest.raises(AttributeError, match="no attribute 'draw_nothing'"):
        _ = reports.draw_nothing
