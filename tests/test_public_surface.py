"""What is exported exists and is documented."""

import importlib
import inspect

import pytest

PACKAGES = ("attacks", "audit", "data", "defences", "metrics", "models", "privacy", "scores", "training", "transforms")


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
