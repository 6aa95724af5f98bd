"""The finished jobs of an audit on disk, so that a killed audit goes on where it was."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from torch import Tensor

from gradveil.errors import DataError, OutputError, SettingsError
from gradveil.folders import only_writer
from gradveil.machine import release_memory
from gradveil.results import PRIVATE, read_sealed, seal, to_json, write_file
from gradveil.tensor_files import read_sealed_tensors, seal_tensors
from gradveil.workers import Crew, Job, OnProgress

Result = TypeVar("Result")
Tensors = dict[str, Tensor]
WORK, SETTINGS, MODELS, LOCK = "work", "settings.json", "models", "lock"
CONTENT = "content"


@dataclass(frozen=True)
class Form(Generic[Result]):
    """How a result becomes tensors and a JSON value, and comes back from them."""

    pack: Callable[[Result], tuple[Tensors, Any]]
    unpack: Callable[[Tensors, Any], Result]


@dataclass(frozen=True)
class KeptWork:
    """A folder with one sealed file for each finished job; its owner alone can read it, for it holds private images."""

    folder: Path

    @property
    def models(self) -> Path:
        """The place where trainings under way keep their state."""
        return self.folder / MODELS

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to go on with."""
        return not self.models.exists() and not any(self.folder.glob("*.safetensors"))

    def run(
        self, crew: Crew, jobs: Mapping[str, Job[Result]], form: Form[Result], on_progress: OnProgress
    ) -> list[Result]:
        """Run the jobs that are not kept and keep them, each as it ends; results come in the order of the jobs."""
        kept = {name: form.unpack(*self.read(name)) for name in jobs if self.path_of(name).exists()}
        names = list(jobs)
        missing = [name for name in names if name not in kept]
        for name in kept:
            on_progress(names.index(name), 1, 1)

        def report(position: int, done: int, total: int) -> None:
            on_progress(names.index(missing[position]), done, total)

        def keep(position: int, result: Result) -> None:
            self.write(missing[position], *form.pack(result))
            release_memory()

        fresh = crew.run([jobs[name] for name in missing], report, keep)
        kept |= dict(zip(missing, fresh, strict=True))
        return [kept[name] for name in names]

    def path_of(self, name: str) -> Path:
        """Find the file of a job; a job's name may hold signs that a file's cannot."""
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.safetensors"

    def write(self, name: str, tensors: Tensors, content: Any) -> None:
        text = json.dumps({"job": name, "content": content})
        write_file(self.path_of(name), seal_tensors(tensors, CONTENT, text), PRIVATE)

    def read(self, name: str) -> tuple[Tensors, Any]:
        try:
            tensors, text = read_sealed_tensors(self.path_of(name), CONTENT)
        except DataError as error:
            raise DataError(f"{error}: remove it, and its job is run again") from error
        kept = json.loads(text)
        if kept["job"] != name:
            raise DataError(f"{self.path_of(name)} is of the job '{kept['job']}', not of '{name}': remove it")
        return tensors, kept["content"]


def run_jobs(
    crew: Crew,
    kept: KeptWork | None,
    jobs: Mapping[str, Job[Result]],
    form: Form[Result],
    on_progress: OnProgress,
) -> list[Result]:
    """Run jobs, kept on disk if there is a place for that."""
    if kept is None:
        return crew.run(list(jobs.values()), on_progress, lambda *_: release_memory())
    return kept.run(crew, jobs, form, on_progress)


def is_unfinished(folder: Path) -> bool:
    """Tell whether a folder holds an audit that was cut short."""
    return (folder / WORK / SETTINGS).exists()


def read_work(folder: Path) -> dict[str, Any]:
    """Read what the unfinished audit in a folder was asked to do."""
    if not is_unfinished(folder):
        raise OutputError(f"{folder} holds no unfinished audit to resume: start one there without --resume")
    path = folder / WORK / SETTINGS
    work = read_sealed(path)
    if not isinstance(work.get("settings"), dict) or not isinstance(work.get("command_line"), str):
        raise DataError(f"{path} does not say what the audit was asked: copy it again, or start anew with --overwrite")
    return work


@contextmanager
def opened_work(folder: Path, asked: Mapping[str, Any], resume: bool) -> Iterator[KeptWork]:
    """Begin or go on with the work in a folder and keep others out; it is removed when the block ends without error.

    After an error it stays if it holds a finished job. `asked` says what the results depend on: work that was begun
    with something else is refused.
    """
    work = folder / WORK
    if not resume:
        begin(work)
    with only_audit(work):
        if (work / SETTINGS).exists():
            check_same(read_sealed(work / SETTINGS), asked, folder)
        else:
            write_settings(work, asked)
        kept = KeptWork(work)
        try:
            yield kept
        except Exception:
            if kept.is_empty:
                shutil.rmtree(work)
            raise
        shutil.rmtree(work)


def write_settings(work: Path, asked: Mapping[str, Any]) -> None:
    """Write down what was asked; without it nobody could go on, so that without room for it nothing stays."""
    try:
        write_file(work / SETTINGS, to_json(seal(asked)), PRIVATE)
    except OutputError:
        shutil.rmtree(work)
        raise


def begin(work: Path) -> None:
    """Make the folder; of two audits that start at once, one is refused here."""
    if work.exists() and not (work / SETTINGS).exists():
        # An audit was killed before there was anything to go on with.
        discard_work(work.parent)
    try:
        work.mkdir(mode=0o700)
    except FileExistsError as error:
        raise OutputError(f"another audit has begun in {work.parent}: choose another folder with --out") from error
    except OSError as error:
        raise OutputError(f"cannot write to {work}: {error.strerror}; choose another folder with --out") from error


def only_audit(work: Path) -> AbstractContextManager[object]:
    """Keep a second audit out while a block runs."""
    busy = f"another audit is at work in {work.parent}: wait for it, or choose another folder with --out"
    return only_writer(work / LOCK, busy)


def discard_work(folder: Path) -> None:
    """Remove the unfinished work in a folder, unless an audit is at it."""
    work = folder / WORK
    if work.exists():
        with only_audit(work):
            shutil.rmtree(work)


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Refuse to go on with an audit that was asked something else."""
    changed = list_differences(before, json.loads(json.dumps(seal(now))))
    if changed:
        raise SettingsError(
            f"the audit in {folder} was started otherwise: {'; '.join(changed)}. Resume it with --resume "
            f"{folder} and no other option, or start another in a new folder"
        )


def list_differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Name every value that differs, with both values; what only describes the run may differ."""
    differences = []
    for key in dict.fromkeys([*before, *now]):
        old, new = before.get(key), now.get(key)
        if prefix == "" and key in FREE:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            differences += list_differences(old, new, f"{prefix}{key}.")
        elif old != new:
            differences.append(f"{prefix}{key} was {old} and is {new}")
    return differences


FREE: Sequence[str] = ("command_line", "root", "sha256_of_content")
