"""gradveil: what do the updates shared in federated learning give away, and what stops it?

`gradveil.audit(model, loader)` audits a model of your own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # At run time `audit` is the package, which can be called; type checkers know no such package.
    from gradveil.audit.own import audit_model as audit

__version__ = "0.1.0"
__all__ = ["__version__", "audit"]


def __getattr__(name: str) -> Any:
    """Import the audit when it is first used: the command line starts without torch."""
    if name == "audit":
        return import_module("gradveil.audit")
    raise AttributeError(f"module 'gradveil' has no attribute '{name}'")
