"""`--resume DIR` brings back the options of the run, and never code that a file names."""

from pathlib import Path
from typing import Annotated, Any

import click
import pytest
import typer
from typer.main import get_group

from gradveil.cli.options import Out, Resume
from gradveil.cli.runs import REQUEST, Run, say_how_to_resume, write_request
from gradveil.cli.teaching import GroupedCommand
from gradveil.errors import GradveilError, OutputError, SettingsError
from gradveil.results import seal, to_json

SEEN: list[dict[str, Any]] = []
CUT = "cut"


def stroll(
    steps: Annotated[int, typer.Option("--steps")] = 1,
    model: Annotated[str, typer.Option("--model")] = "lenet",
    defence: Annotated[list[str] | None, typer.Option("--defence")] = None,
    place: Annotated[Path | None, typer.Option("--place")] = None,
    fail: Annotated[bool, typer.Option("--fail")] = False,
    resume: Resume = None,
    out: Out = Path("nowhere"),
) -> None:
    """Walk."""
    with Run("stroll", out, lambda folder: (folder / CUT).exists(), (CUT,)).folder(resume is not None, False) as folder:
        SEEN.append({"steps": steps, "model": model, "defence": defence, "place": place})
        (folder / CUT).touch()
        if fail and resume is None:
            raise GradveilError("cut short")
        (folder / CUT).unlink()


def call(*words: str) -> dict[str, Any]:
    holder = typer.Typer(rich_markup_mode=None)
    holder.command("stroll", cls=GroupedCommand)(stroll)
    holder.command("other")(lambda: None)
    SEEN.clear()
    get_group(holder)(["stroll", *words], standalone_mode=False)
    return SEEN[-1]


def cut_short(folder: Path, *words: str) -> None:
    with pytest.raises(GradveilError, match="cut short"):
        call(*words, "--fail", "--out", str(folder))


def test_the_options_of_the_run_come_back(tmp_path: Path) -> None:
    cut_short(tmp_path, "--steps", "7", "--defence", "clip:1", "--defence", "gaussian:1e-3", "--place", "here")
    assert (tmp_path / REQUEST).stat().st_mode & 0o777 == 0o600
    asked = {"steps": 7, "model": "lenet", "defence": ["clip:1", "gaussian:1e-3"], "place": Path("here")}
    assert call("--resume", str(tmp_path)) == asked
    assert list(tmp_path.iterdir()) == []


def test_what_is_given_again_counts(tmp_path: Path) -> None:
    cut_short(tmp_path, "--steps", "7")
    assert call("--resume", str(tmp_path), "--steps", "8")["steps"] == 8


@pytest.mark.parametrize(
    "words", [("--model", "evil:run"), ("--model", "clip:run"), ("--defence", "clip:1,evil.code:Run")]
)
def test_code_is_not_imported_because_a_file_names_it(tmp_path: Path, words: tuple[str, str]) -> None:
    cut_short(tmp_path, *words)
    with pytest.raises(SettingsError) as refused:
        call("--resume", str(tmp_path))
    assert str(refused.value).endswith(f"write gradveil stroll --resume {tmp_path} {' '.join(words)}")
    assert say_how_to_resume("stroll", tmp_path).endswith(" ".join(words))
    call("--resume", str(tmp_path), *words)


def test_a_changed_request_and_one_of_another_command_are_refused(tmp_path: Path) -> None:
    cut_short(tmp_path)
    (tmp_path / REQUEST).write_text((tmp_path / REQUEST).read_text().replace('"steps": 1', '"steps": 2'))
    with pytest.raises(GradveilError, match="changed"):
        call("--resume", str(tmp_path))
    (tmp_path / REQUEST).write_text(to_json(seal({"command": "audit", "options": {}})))
    with pytest.raises(OutputError, match="resume it with gradveil audit"):
        call("--resume", str(tmp_path))


def test_one_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="leave out --out"):
        call("--resume", str(tmp_path), "--out", "elsewhere")
    with pytest.raises(OutputError, match="holds no run to resume"):
        call("--resume", str(tmp_path / "missing"))


def test_an_unfinished_run_is_not_begun_again(tmp_path: Path) -> None:
    cut_short(tmp_path)
    with pytest.raises(OutputError, match=f"go on with --resume {tmp_path}"):
        call("--out", str(tmp_path))


def test_outside_a_command_nothing_is_written_down(tmp_path: Path) -> None:
    assert click.get_current_context(silent=True) is None
    write_request(tmp_path)
    assert list(tmp_path.iterdir()) == []
