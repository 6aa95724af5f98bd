"""The pytest plugin: `assert_no_leak` fails a test whose audit shows a leak.

pytest loads it in every run where gradveil is installed, so it imports nothing heavy before it is used.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gradveil.audit import AuditReport

AssertNoLeak = Callable[..., None]


def check_report(report: "AuditReport", above: float = 3.0) -> None:
    """Fail if the audit shows a leak above so many dB, or if no arm of it can be judged.

    What counts is what `gradveil audit --fail-above` counts: see `gradveil.audit.find_leaks`. A report in which every
    arm is untrustworthy is no evidence that nothing leaks, so it fails too.
    """
    __tracebackhide__ = True
    leaks = import_module("gradveil.audit").find_leaks(report, above)
    if leaks:
        lines = "\n".join(f"  {leak}\n    {leak.summary.reason}" for leak in leaks)
        pytest.fail(f"the audit shows a leak above {above:g} dB:\n{lines}", pytrace=False)
    defended = [one for one in report.summaries if not (report.settings.control and one.arm == "none")]
    if all(one.outcome == "untrusted" for one in defended):
        lines = "\n".join(f"  {one.arm}, {one.phase}, {one.attack}: {one.reason}" for one in defended)
        pytest.fail(f"the audit cannot tell whether anything leaks:\n{lines}", pytrace=False)


@pytest.fixture
def assert_no_leak() -> AssertNoLeak:
    """Return the check: `assert_no_leak(report, above=3.0)`."""
    return check_report
