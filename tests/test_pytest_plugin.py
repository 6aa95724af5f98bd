"""The plugin, in a pytest of its own."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

PLUGIN = "gradveil.pytest_plugin"
TESTS = """
import pytest
from tests.audit.test_gate import make_report

LEAKS = "crop-flip", "leaks", 4.0, {1: 5.0, 2: 3.0}, ()
QUIET = "crop-flip", "none-found", 0.1, {1: 0.1}, ()
LOST = "crop-flip", "untrusted", 0.1, {1: 0.1}, ()
CONTROL = "none", "leaks", 9.0, {1: 9.0}, ()

def test_leak(assert_no_leak):
    assert_no_leak(make_report(CONTROL, LEAKS, control=True), above=3.0)

def test_small_leak(assert_no_leak):
    assert_no_leak(make_report(CONTROL, LEAKS, control=True), above=6.0)

def test_quiet(assert_no_leak):
    assert_no_leak(make_report(CONTROL, QUIET, control=True))

def test_lost(assert_no_leak):
    assert_no_leak(make_report(LOST))
"""


def test_a_leak_fails_a_test_with_a_clear_message(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(TESTS)
    root = Path(__file__).parent.parent
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        # As if the plugin were not installed: otherwise it would be there twice.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "the audit shows a leak above 3 dB:\n  crop-flip, init, fast: leaks, mean advantage +4.0 dB" in done.stdout
    assert "the audit cannot tell whether anything leaks:\n  crop-flip, init, fast" in done.stdout
    assert "Traceback" not in done.stdout


def test_pytest_finds_it() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"gradveil": PLUGIN}


def test_it_costs_little_to_load() -> None:
    code = f"import sys, {PLUGIN}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
