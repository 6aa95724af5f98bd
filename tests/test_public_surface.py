"""What is exported exists and is documented."""

import importlib
import inspect
import subprocess
import sys

import pytest

import gradveil
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


@pytest.mark.parametrize("name", gradveil.__all__)
def test_the_bare_package_has_what_it_names(name: str) -> None:
    member = getattr(gradveil, name)
    assert name == "__version__" or member.__doc__ or isinstance(member, dict)
    assert name in dir(gradveil)


def test_the_bare_package_has_nothing_else() -> None:
    assert set(gradveil.PLACES) | {*gradveil.CALLABLE, "__version__"} == set(gradveil.__all__)
    with pytest.raises(AttributeError, match="no attribute 'adit'"):
        _ = gradveil.adit


ORDERS = (
    "import gradveil; first = gradveil.{name}; import gradveil.{name}; second = gradveil.{name}",
    "import gradveil.{name}; import gradveil; first = second = gradveil.{name}",
    "from gradveil.{name} import {inner}; import gradveil; from gradveil import {name} as first; second = first",
    "from gradveil import {name} as first; from gradveil.{name} import {inner}; import gradveil.{name} as second",
)


@pytest.mark.parametrize(("name", "inner"), [("audit", "audit_model"), ("search", "search_policies")])
def test_a_package_can_be_called_in_whatever_order_things_are_imported(name: str, inner: str) -> None:
    check = (
        "import sys; assert first is second is sys.modules['gradveil.{name}'] and callable(first), (first, second); "
    )
    check += "assert first.{inner} is type(first).__call__; "
    forget = "[sys.modules.pop(one) for one in list(sys.modules) if one.partition('.')[0] == 'gradveil']; "
    code = "".join(f"{order}; {check}{forget}\n" for order in ORDERS).format(name=name, inner=inner)
    subprocess.run([sys.executable, "-c", f"import sys\n{code}"], check=True)


def test_reports_list_the_names_that_their_modules_have() -> None:
    assert sorted(name for names in reports.MODULES.values() for name in names) == sorted(reports.__all__)
    with pytest.raises(AttributeError, match="no attribute 'draw_nothing'"):
        _ = reports.draw_nothing
