"""`gradveil attack` as a person uses it."""

import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from gradveil.cli import main
from gradveil.data import choose_attacked, load

TINY = ("--images", "2", "--steps", "3")


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "attack", *words])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_writes_pictures_curves_and_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a"
    assert run(monkeypatch, *TINY, "--defence", "policy:3-1-7", "--out", str(out)) == 0
    shown = capsys.readouterr().out
    record = json.loads((out / "attack.json").read_text())
    assert record["command"] == "attack"
    assert [row["image"] for row in record["rows"]] == list(choose_attacked(load("fashion-mnist-sample"), 2, 0))
    assert {"psnr_transformed", "floor_original", "advantage_original", "status"} <= set(record["rows"][0])
    assert record["attacker_needs"]
    for name in ("steps.png", "loss.png", "similarity.png"):
        assert name in shown
        with Image.open(out / name) as picture:
            assert min(picture.size) > 50
    assert (out / "steps.png").stat().st_mode & 0o777 == 0o600, "it shows private images"


def test_a_budget_is_recorded_with_what_it_came_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "--images", "1", "--budget", "0.05", "--out", str(tmp_path / "a")) == 0
    settings = json.loads((tmp_path / "a" / "attack.json").read_text())["settings"]
    assert settings["budget"] == 0.05
    assert settings["gradients"] >= 1
    assert settings["steps"] is None


def test_json_is_the_record_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *TINY, "--images", "5,", "--labels", "hidden", "--out", str(tmp_path / "a"), "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["image"] for row in record["rows"]] == [5]
    assert record["settings"]["labels"] == "hidden"


def test_an_attacker_may_know_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--attack", "policy-aware", "--steps", "2", "--images", "1", "--defence", "policy:3-1-7,no-base")
    assert run(monkeypatch, *words, "--out", str(tmp_path / "a")) == 2
    assert run(monkeypatch, *words, "--knows-defence", "--out", str(tmp_path / "b")) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--attack", "adam-cosin"), "did you mean 'adam-cosine'"),
        (("--budget", "0"), "more than 0"),
        (("--images", "many"), "give a number"),
        (("--images", "0"), "give 1 or more"),
        (("--images", "3,3"), "different places"),
        (("--images", "9999,"), "places from 0 to 999"),
        (("--phase", "final"), "--checkpoint"),
        (("--checkpoint", "nowhere.safetensors"), "cannot be read"),
        (("--attack", "analytic", "--steps", "5"), "takes no steps"),
        (("--attack", "analytic"), "fully connected"),
        (("--threads", "0"), "give 1 or more"),
        (("--defence", "policy:99"), "choose an index"),
        (("--steps", "0"), "give 1 or more"),
    ],
)
def test_nonsense_ends_in_one_line(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *words, "--out", str(tmp_path / "a")) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "a").exists()
