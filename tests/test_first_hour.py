"""The first hour of a new user, from end to end: own photos, own model, own weights, own attack, own defence."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file
from torch.utils.data import DataLoader, TensorDataset

import gradveil
from gradveil.__main__ import main
from tests.cli.test_audit_own import MODEL, Own, write_photos

README = Path(__file__).parents[1] / "README.md"
CODE = "from gradveil.__main__ import main; main()"
OWN = ("--data", "folder:photos", "--model", "own_model:Own")
MINE = '''
from pathlib import Path

from gradveil import ATTACKS, Defence


class Coarse(Defence):
    """Round what is released to one digit."""

    hooks = ("release",)
    used = "that values are rounded"

    def __str__(self):
        return "coarse"

    def release(self, update, generator):
        from dataclasses import replace
        return replace(update, tensors={name: (one * 10).round() / 10 for name, one in update.tensors.items()})


class Short(type(ATTACKS["fast"])):
    """The attack `fast`, in a few steps; it breaks down at its second call if there is a file `break`."""

    def attack_many(self, task, updates, generators, progress=None):
        global calls
        calls += 1
        if calls == 2 and Path("break").exists():
            raise RuntimeError("the machine went down")
        return super().attack_many(task, updates, generators, progress)


calls = 0


def short():
    fast = ATTACKS["fast"].with_steps(5)
    return Short(**{name: getattr(fast, name) for name in fast.__dataclass_fields__})
'''


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 60 photos in four classes, a model, its weights, an attack and a defence."""
    write_photos(tmp_path / "photos", 15)
    (tmp_path / "own_model.py").write_text(MODEL)
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Shown(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


Call = Callable[..., Shown]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Call commands one after the other in this process, which is much quicker than to start one for each."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(*words: str, code: int = 0) -> Shown:
        monkeypatch.setattr(sys, "argv", ["gradveil", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = Shown(*capsys.readouterr())
        assert ended.value.code == code, f"{words}: {shown}"
        return shown

    yield run
    sys.modules.pop("own_model", None)


def start(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Call a command in a process of its own, which imports own code anew."""
    done = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
    return done


def record_of(path: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(Path(path).read_text())
    return record


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_by_the_command_line(call: Call) -> None:
    # A word too little is told in one line.
    assert call("audit", "--data", "photos", code=2).stderr == (
        "gradveil: unknown data set 'photos', which is a folder: write folder:photos\n"
    )
    # Train, and keep plain weights, as people have them.
    call("train", *OWN, "--epochs", "4", "--recipe", "fast", "--out", "runs/first", "-q")
    torch.save(load_file("runs/first/final.safetensors"), "trained.pt")
    # How long, and then audit the weights; more images than there are become all of them.
    small = (*OWN, "--checkpoint", "trained.pt", "--steps", "20", "--images", "50", "--workers", "1")
    plan = call("audit", *small, "--dry-run").stdout
    assert "folder:photos has 12 test images: 12 are attacked, not 50." in plan
    assert re.search(r"At most 4 cells, 48 attacks on one image, 960 gradients: .* here\.", " ".join(plan.split()))
    assert not Path("runs/audit").exists()
    shown = call("audit", *small, "--defence", "crop-flip", "--out", "runs/before").stdout
    assert "At most 2 cells" in shown
    assert {one["phase"] for one in record_of("runs/before/audit.json")["summaries"]} == {"given"}
    # Choose a defence: score one, search for others.
    call("score", "3-1-7", *OWN, "--checkpoint", "trained.pt", "--images", "6", "--out", "runs/score", "-q")
    assert record_of("runs/score/score.json")["policies"][1]["policy"] == "3-1-7"
    words = (*OWN, "--checkpoint", "trained.pt", "--candidates", "6", "--keep", "2", "--workers", "1")
    shown = call("search", *words, "--out", "runs/search").stdout
    assert "10 are scored, not 100" in shown
    assert "hybrid:" in shown
    assert call("search", "--status", "runs/search").stdout.startswith("finished")
    # Train with it and audit again: every file names the arm alike.
    hybrid = record_of("runs/search/search.json")["hybrid"]
    found = ("--policy", "runs/search/policies.json")
    call("train", *OWN, *found, "--epochs", "2", "--recipe", "fast", "--out", "runs/trained", "-q")
    assert record_of("runs/trained/train.json")["settings"]["arm"] == f"policy:{hybrid}"
    again = (*OWN, "--checkpoint", "runs/trained/final.safetensors", "--steps", "5", "--images", "2", "--workers", "1")
    call("audit", *again, *found, "--no-pictures", "--out", "runs/after", "-q")
    assert record_of("runs/after/audit.json")["settings"]["arms"] == ["none", f"policy:{hybrid}"]
    assert sorted(path.name for path in Path("runs/after").iterdir()) == ["audit.csv", "audit.json", "report.html"]
    assert "This page has no pictures." in Path("runs/after/report.html").read_text()
    # Pass it on.
    call("report", "runs/before", "--no-originals", "--out", "shared.html")
    call("report", "runs/before", "runs/after")
    assert "holds" in call("report", "--verify", "runs/before", "runs/after").stdout


@pytest.mark.slow
def test_own_attack_and_defence_by_the_command_line(home: Path) -> None:
    words = (*OWN, "--phase", "init", "--attack", "mine:short", "--defence", "mine:Coarse", "--images", "4")
    alone = ("--workers", "1", "--out", "runs/own")
    (home / "break").touch()
    broken = start("audit", *words, "--images-per-client", "1", *alone, code=1)
    assert "the machine went down" in broken.stderr
    # A file names no code; the line says what to type, and it works unless the code is another.
    refused = start("audit", "--resume", "runs/own", code=2).stderr
    line = "--resume runs/own --model own_model:Own --attack mine:short --defence mine:Coarse"
    assert refused.endswith(f"write gradveil audit {line}\n")
    (home / "break").unlink()
    (home / "mine.py").write_text(MINE.replace("* 10", "* 20"))
    assert "settings.code.mine:short was" in start("audit", *line.split(), code=2).stderr
    (home / "mine.py").write_text(MINE)
    start("audit", *line.split(), "--workers", "1", "-q")
    settings = record_of("runs/own/audit.json")["settings"]
    assert (settings["arms"], settings["attacks"]) == (["none", "mine:Coarse"], ["mine:short"])
    assert set(settings["code"]) == {"mine:short", "mine:Coarse"}


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_by_python(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "path", [str(Path.cwd()), *sys.path])
    import mine  # type: ignore[import-not-found]

    photos = gradveil.load_data("folder:photos")
    model = Own()
    found = gradveil.search(model, photos, candidates=6, keep=2)
    arm = f"policy:{found.hybrid}"
    trained = gradveil.train(model, photos, arm=arm, epochs=2)
    model.load_state_dict(trained.snapshots["final"])
    report = gradveil.audit(model, photos, arms=[arm, mine.Coarse()], attacks=[mine.short()], images=2)
    assert [one.arm for one in report.summaries] == ["none", arm, "coarse"]
    assert {row.status for row in report.rows} == {"ok"}
    assert report._repr_html_().startswith("<iframe")
    # The README's own example, as it is printed.
    images = torch.cat([photos.train.images, photos.test.images]).float() / 255
    loader = DataLoader(TensorDataset(images, torch.cat([photos.train.labels, photos.test.labels])), batch_size=8)
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {"model": model, "loader": loader})
    assert Path("report.html").stat().st_size > 10_000
    assert "none" in capsys.readouterr().out
    sys.modules.pop("mine", None)
