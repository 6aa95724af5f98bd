"""`gradveil check-dp`, as the shell runs it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gradveil import cli

CONFIGURATIONS = Path(__file__).parent.parent / "privacy" / "configurations"
LOCAL = ("--clip", "1", "--sensitivity", "1e-4", "--epsilon", "10", "--delta", "1e-5")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line as the shell would; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["gradveil", "check-dp", *arguments])
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def run_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(monkeypatch, *arguments, "--json") == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


@pytest.mark.parametrize(
    ("arguments", "release", "whole", "bound"),
    [
        (LOCAL, 2.13107e8, 2.13107e8, 1.0),
        (("--flower", "local.toml"), 2.13107e8, 6.39208e8, 1.0),
        (("--flower", "server.toml", "--sampling", "1"), 4.37718, 91.8173, 0.092362),
        (("--nvflare", "config_fed_client.json", "--weights", "7033282"), 70_333.0, 70_333.0, 1.0),
        (("--opacus", "opacus.json"), 0.926342, 4.37718, 0.018931),
    ],
)
def test_the_configurations_computed_by_hand(
    arguments: tuple[str, ...],
    release: float,
    whole: float,
    bound: float,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Their arithmetic stands in tests/privacy; over R rounds μ grows by √R.

    Bounds: Φ(Φ⁻¹(0.01) + 1/noise), so Φ(−2.32635 + 1) = 0.09236 and Φ(−2.32635 + 0.25) = 0.01893.
    """
    monkeypatch.chdir(CONFIGURATIONS)
    record = run_json(monkeypatch, capsys, *arguments)
    assert record["command"] == "check-dp"
    assert record["epsilon_release"] == pytest.approx(release, rel=1e-5)
    assert record["epsilon_run"] == pytest.approx(whole, rel=1e-5)
    assert record["reconstruction_bound"] == pytest.approx(bound, rel=1e-4)
    assert record["warnings"]


def test_sampling_lowers_epsilon_of_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--clip", "1", "--sensitivity", "1", "--epsilon", "1", "--delta", "1e-5", "--rounds", "50")
    every = run_json(monkeypatch, capsys, *settings)
    some = run_json(monkeypatch, capsys, *settings, "--sampling", "0.1")
    assert some["epsilon_run"] < every["epsilon_run"] / 5
    assert some["epsilon_release"] == every["epsilon_release"]
    assert some["replacing"] == every["replacing"]


def test_the_table_shows_claim_truth_and_warnings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *LOCAL) == 0
    shown = capsys.readouterr().out
    for text in ("Flower LocalDpMod", "settings claim", "2.13e+08", "8.52e+08", "4.845e-05", "nothing checks it"):
        assert text in shown


def test_a_filter_without_epsilon_shows_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config_fed_client.json"
    path.write_text('{"task_result_filters": [{"tasks": ["*"], "filters": [{"name": "PercentilePrivacy"}]}]}')
    assert run(monkeypatch, "--nvflare", str(path)) == 0
    shown = capsys.readouterr().out
    assert "none" in shown
    assert "PercentilePrivacy adds no noise" in shown
    assert run_json(monkeypatch, capsys, "--nvflare", str(path))["epsilon_release"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of --flower"),
        (("--delta", "1e-5"), "give one of --flower"),
        ((*LOCAL, "--flower", "local.toml"), "give one of --flower"),
        (("--flower", "local.toml", "--opacus", "opacus.json"), "give one of --flower"),
        (LOCAL[:6], "give all four"),
        (LOCAL[2:], "give all four"),
        ((*LOCAL, "--rounds", "0"), "rounds is 0"),
        ((*LOCAL, "--sampling", "2"), "sampling is 2.0"),
        ((*LOCAL[:6], "--delta", "nan"), "delta is nan"),
        ((*LOCAL[2:], "--clip", "inf"), "clipping_norm is inf"),
        ((*LOCAL[2:], "--clip", "-1"), "clipping_norm is -1.0"),
        ((*LOCAL, "--weights", "3"), "--weights is for --nvflare"),
        (("--opacus", "opacus.json", "--sampling", "0.1"), "--sampling does not go with --opacus"),
        (("--flower", "none.toml"), "cannot be read"),
        (("--flower", "opacus.json"), "unknown Flower"),
        (("--opacus", "adaptive.json"), "unknown Opacus setting 'mechanism'"),
        (("--nvflare", "opacus.json"), "has no filter"),
    ],
)
def test_nonsense_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(CONFIGURATIONS)
    assert run(monkeypatch, *arguments) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("gradveil: ")
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
