"""Every error is one of ours, and tells what to do."""

import inspect

import pytest

from gradveil import errors
from gradveil.errors import GradveilError, MissingExtraError, UnknownNameError, import_extra


def test_the_drawn_tree_is_the_real_one() -> None:
    drawn = errors.__doc__ or ""
    for name, member in inspect.getmembers(errors, inspect.isclass):
        if issubclass(member, Exception):
            assert issubclass(member, GradveilError)
            assert name in drawn


def test_an_unknown_name_lists_what_is_allowed() -> None:
    error = UnknownNameError("model", "lennet", ["lenet", "mlp"])
    assert str(error) == "unknown model 'lennet': choose from lenet, mlp; did you mean 'lenet'?"


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'gradveil\[federated\]'"):
        import_extra("package_that_is_not_there", "federated")
    assert import_extra("json", "none").__name__ == "json"
