"""Flower's environment, and what happens without Flower."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradveil.federated.flower import (
    ENVIRONMENT,
    HOME,
    RAY_ENVIRONMENT,
    alone_on_this_machine,
    prepare_environment,
    silenced,
)


def test_the_environment_keeps_flower_quiet_and_out_of_the_home_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (*ENVIRONMENT, HOME):
        monkeypatch.delenv(name, raising=False)
    prepare_environment()
    assert {name: os.environ[name] for name in ENVIRONMENT} == ENVIRONMENT
    chosen = Path(os.environ[HOME])
    assert chosen != Path.home() / ".flwr"
    assert not chosen.exists()
    prepare_environment()
    assert Path(os.environ[HOME]) == chosen
    prepare_environment(tmp_path)
    assert Path(os.environ[HOME]) == tmp_path


def test_without_flower_there_is_one_line() -> None:
    code = "import sys; sys.modules['flwr'] = None; from gradveil.cli import main; sys.argv = ['gradveil', 'federate']"
    ended = subprocess.run([sys.executable, "-c", f"{code}; main()"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "pip install 'gradveil[federated]'" in ended.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["federate", "--help"]])
def test_help_needs_no_flower(arguments: list[str]) -> None:
    code = f"import sys; sys.modules['flwr'] = None; sys.argv = ['gradveil', *{arguments}]"
    code += "; from gradveil.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_flower_prints_nothing_within_the_block(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("flwr")
    before = list(logger.handlers)
    with silenced():
        logger.error("a client failed")
    assert logger.handlers == before
    printed = capsys.readouterr()
    assert "a client failed" not in printed.out + printed.err


def test_ray_is_kept_on_this_machine_only_while_a_run_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that is joined later in the same process must not be told to stay alone."""
    for name in RAY_ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    with alone_on_this_machine():
        assert {name: os.environ[name] for name in RAY_ENVIRONMENT} == RAY_ENVIRONMENT
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "1"
    assert set(RAY_ENVIRONMENT) & set(os.environ) == {"RAY_USAGE_STATS_ENABLED"}
