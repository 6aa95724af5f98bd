"""Places that fail while a command works there: a disk that is full, a folder that turns read-only."""

import ctypes
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.kills import Plan, Reference, Stage, Trial, compare, require, revive
from tests.faults.processes import Ended, FaultError, Place, new_place, on_file_operation, run_forked

FULL, READ_ONLY = "full disk", "read-only folder"
PAGE = 4096
OVERRIDES = (1 << 1) | (1 << 2)
"""The two rights (CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH) by which root writes where nobody may."""
VERSION_3 = 0x20080522
"""The form in which Linux tells the rights of a process."""


def can_mount() -> bool:
    """Tell whether this process may mount: in some containers even root may not."""
    return os.geteuid() == 0 and subprocess.run(["mount", "--help"], capture_output=True, check=False).returncode == 0


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """Put a disk of so many bytes at a folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill_disk(stage: Stage, reference: Reference, seed: int) -> Trial:
    """Let a command run out of space, make room, and go on."""
    source = random.Random(f"full {seed}")
    share = source.random()
    size = PAGE * (1 + int(share * 1.3 * (reference.bytes / PAGE + len(reference.result))))
    trial = Trial(Plan(reference.scenario.name, (FULL,), (share,), f"{size // PAGE} pages", False))
    with judged(trial), new_place(stage.root) as outer, small_disk(outer.folder / "disk", size):
        place = Roomy(outer.folder)
        ended = run_forked((*reference.scenario.words, "--out", str(place.out)), place)
        if not is_refused(ended, trial):
            compare(reference, place, trial, "came too late")
            return trial
        grow = ["mount", "-o", "remount,size=64m", str(outer.folder / "disk")]
        subprocess.run(grow, check=True, capture_output=True)
        revive(reference, place, trial)
    return trial


class Roomy(Place):
    """A place whose results lie on a disk of their own."""

    @property
    def out(self) -> Path:
        return self.folder / "disk" / "out"


def lock_folder(stage: Stage, reference: Reference, seed: int) -> Trial:
    """Let the folder turn read-only at one of the command's file operations, make it writable again, and go on."""
    moment = random.Random(f"locked {seed}").random()
    trial = Trial(Plan(reference.scenario.name, (READ_ONLY,), (moment,), "file operation", False))
    with judged(trial), new_place(stage.root) as place:
        last = round(moment * (reference.operations - 1))

        def prepare() -> None:
            give_up_overrides()
            on_file_operation(place.out, lock_at(last, place.out))

        ended = run_forked((*reference.scenario.words, "--out", str(place.out)), place, prepare)
        change_modes(place.out, 0o755)
        if is_refused(ended, trial):
            revive(reference, place, trial)
        else:
            compare(reference, place, trial, "came too late")
    return trial


def lock_at(last: int, out: Path) -> Callable[[str, str], None]:
    seen = -1

    def act(event: str, target: str) -> None:
        del event, target
        nonlocal seen
        seen += 1
        if seen == last:
            change_modes(out if out.exists() else out.parent, 0o555)

    return act


def change_modes(folder: Path, mode: int) -> None:
    """Change the rights of a folder, of those in it, and of the one that it lies in if it is not there yet."""
    for one in [folder, *folder.rglob("*")] if folder.exists() else []:
        if one.is_dir():
            one.chmod(mode)
    if mode & 0o200 and folder.parent.exists():
        folder.parent.chmod(mode)


def give_up_overrides() -> None:
    """Give up, in this process, the rights by which root writes anywhere."""
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capget(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    for place in (0, 1):  # effective and permitted
        sets[place] &= ~OVERRIDES
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def is_refused(ended: Ended, trial: Trial) -> bool:
    """Tell whether a command ended for lack of a place to write, in one line; False if it came to its end before."""
    if ended.code == 0:
        trial.late += 1
        return False
    is_line = len(ended.lines) == 1 and ended.lines[0].startswith("gradveil: ")
    require(ended.code == 2 and is_line, f"it ends with {ended.code}: {ended.said[-900:]}")
    trial.kills += 1
    return True


@contextmanager
def judged(trial: Trial) -> Iterator[None]:
    """Take down a fault as what became of a trial."""
    try:
        yield
    except FaultError as error:
        trial.fault = str(error)


FAULTS: dict[str, Callable[[Stage, Reference, int], Trial]] = {FULL: fill_disk, READ_ONLY: lock_folder}
