"""Runs that can be resumed: their folders, and what they were asked, so that `--resume DIR` needs no other option."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gradveil.errors import OutputError, SettingsError
from gradveil.folders import claimed_folder, only_command
from gradveil.own_code import is_own
from gradveil.results import PRIVATE, read_sealed, seal, to_json, write_file
from gradveil.stops import say_on_stop

REQUEST = "request.json"
"""What a run was asked; it is there while the run is not finished."""
TRANSIENT = ("resume", "out", "overwrite", "status", "dry_run", "quiet", "as_json")
"""Options that belong to one call, not to the run."""
CODE = ("model", "attack", "observe_attack", "defence")
"""Options that can name code of a person's own. Only the person names it, never a file."""


@dataclass(frozen=True)
class Run:
    """The folder of a command that can be resumed: what an unfinished run is, and the files that such a run leaves."""

    command: str
    out: Path
    is_unfinished: Callable[[Path], bool]
    pieces: Sequence[str]
    code: Sequence[str] | None = None
    """The options that name code of a person's own, of a run that writes down by itself what it was asked."""

    @contextmanager
    def folder(self, resume: bool, overwrite: bool) -> Iterator[Path]:
        """Yield the folder: claimed for a new run, as it is for one to resume; other commands are kept out."""
        say_on_stop(self.say_what_is_kept)
        if resume:
            if not self.out.is_dir():
                raise OutputError(f"{self.out} holds no run to resume: start one there without --resume")
            with only_command(self.out, self.command):
                yield self.out
                forget_request(self.out)
            return
        if self.is_unfinished(self.out) and not overwrite:
            raise OutputError(
                f"{self.out} holds an unfinished run: go on with --resume {self.out}, start again with --overwrite, or "
                "choose another folder with --out"
            )
        with claimed_folder(self.out, self.command, overwrite, (*self.pieces, REQUEST)) as folder:
            if self.code is None:
                write_request(folder)
            yield folder
            forget_request(folder)

    def say_what_is_kept(self) -> str:
        """Say what a stopped run leaves."""
        if self.is_unfinished(self.out):
            line = say_how_to_resume(self.command, self.out, self.code)
            return f"what is done is kept in {self.out}: go on with {line}"
        if (self.out / f"{self.command}.json").exists():
            return f"the result is kept in {self.out}"
        return "nothing is kept: run it again"


def say_how_to_resume(command: str, folder: Path, words: Sequence[str] | None = None) -> str:
    """Write the command that goes on: with code of a person's own named again."""
    if words is None:
        request = folder / REQUEST
        words = name_code(read_sealed(request)["options"]) if request.exists() else []
    return shlex.join(["gradveil", command, "--resume", str(folder), *words])


def write_request(folder: Path) -> None:
    """Write down what the command that is running was asked."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    options = {name: value for name, value in context.params.items() if name not in TRANSIENT}
    asked = {"command": context.info_name, "options": options}
    write_file(folder / REQUEST, to_json(seal(asked)), PRIVATE)


def forget_request(folder: Path) -> None:
    """Remove what a run was asked when it is finished: its record says it."""
    (folder / REQUEST).unlink(missing_ok=True)


def restore(context: click.Context) -> None:
    """Fill in the options of the run that is resumed, except those that are given again."""
    folder = context.params.get("resume")
    if folder is None:
        return
    if is_given(context, "out") and Path(context.params["out"]) != Path(folder):
        raise SettingsError(f"--resume {folder} names the folder already: leave out --out")
    context.params["out"] = str(folder)
    path = Path(folder) / REQUEST
    if not path.exists():
        return
    asked = read_sealed(path)
    stored = asked.get("options")
    if asked.get("command") != context.info_name or not isinstance(stored, dict):
        raise OutputError(f"{folder} holds a run of another command: resume it with gradveil {asked.get('command')}")
    missing = [name for name in CODE if names_code(name, stored.get(name)) and not is_given(context, name)]
    if missing:
        line = say_how_to_resume(str(context.info_name), Path(folder), name_code(stored))
        raise SettingsError(f"the run in {folder} uses code of your own, which a file cannot name: write {line}")
    parameters = {parameter.name: parameter for parameter in context.command.params}
    for name, value in stored.items():
        if name in parameters and name not in TRANSIENT and not is_given(context, name):
            context.params[name] = parameters[name].process_value(context, value)


def is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def names_code(option: str, value: Any) -> bool:
    """Tell whether what was given for an option names code of a person's own; an arm may name some among others."""
    texts = [str(text) for text in (value if isinstance(value, (list, tuple)) else [value])]
    if option == "defence":
        return any(is_own_part(part) for text in texts for part in text.split(","))
    # No model or attack of ours has a colon in its name.
    return any(":" in text for text in texts)


def is_own_part(part: str) -> bool:
    """Tell whether a part of an arm, or a model or an attack, is a person's own."""
    from gradveil.defences import DEFENCES

    return is_own(part) and part.partition(":")[0] not in DEFENCES


def name_code(options: Mapping[str, Any]) -> list[str]:
    """Write the options that name code of a person's own, as they were given."""
    words = []
    for name in CODE:
        value = options.get(name)
        if names_code(name, value):
            texts = value if isinstance(value, (list, tuple)) else [value]
            words += [word for text in texts for word in (f"--{name.replace('_', '-')}", str(text))]
    return words
