"""Damage every kind of file that is read back, and use it with the real command: the same result, or one line."""

import json
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gradveil.journal import Journal
from gradveil.results import provenance
from tests.faults.kills import Reference, Stage, kill_at, prepared_stage, require
from tests.faults.processes import Ended, FaultError, Place, new_place, on_file_operation, run_forked
from tests.faults.scenarios import OVERWRITE, differences, read_result, without_times

JOURNAL = "corrupted.jsonl"
ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "measured" / "told-defences"
RESCUES = 8
"""Of so many refused folders one is begun anew, to see that it can be."""
KINDS = ("cut off", "flipped bits", "lengthened", "emptied", "swapped", "overwritten")
Words = tuple[str, ...]


@dataclass(frozen=True)
class Use:
    """A format: a folder with whole files of it, which of them are damaged, and the command that reads them.

    `words` are of the command that is run on a copy of the folder, and `read` finds what it came to.
    """

    format: str
    folder: Path
    patterns: tuple[str, ...]
    words: Callable[[Path], Words]
    read: Callable[[Path, Ended], Any]
    rescue: Callable[[Path], Words] | None = None
    spare: tuple[str, ...] = ()
    """Files that are not read, and can be swapped with one that is."""

    def files(self) -> list[Path]:
        return self.find(self.patterns)

    def find(self, patterns: Sequence[str]) -> list[Path]:
        found = {path for pattern in patterns for path in self.folder.glob(pattern) if path.is_file()}
        return sorted(path.relative_to(self.folder) for path in found)


@dataclass(frozen=True)
class Damage:
    """What was done to a file; `also` is the second one of a swap."""

    kind: str
    file: Path
    also: Path | None = None

    def is_named_in(self, line: str) -> bool:
        """Tell whether a line names one of the files, or the one that describes it."""
        return any(one is not None and one.name.partition(".")[0] in line for one in (self.file, self.also))


def half_done(stage: Stage, name: str, share: float) -> Path:
    """Kill a command before one of its file operations and keep its folder."""
    reference = stage.find(name)
    place = Place(stage.root / f"half {name} {share}").make()
    words = (*reference.scenario.words, "--out", str(place.out))
    killed = kill_at(round(share * reference.operations), signal.SIGKILL)
    ended = run_forked(words, place, partial(on_file_operation, place.out, killed))
    require(ended.code == -9, f"{name} was not killed: {ended.said}")
    return place.out


def finished(stage: Stage, words: Words, name: str) -> Path:
    """Run a command to its end and keep its folder."""
    place = Place(stage.root / f"whole {name}").make()
    ended = run_forked((*words, "--out", str(place.out)), place)
    require(ended.code == 0, f"{name} ends with {ended.code}: {ended.said}")
    return place.out


def read_folder(out: Path, ended: Ended) -> Any:
    del ended
    return read_result(out)


def read_files(names: Sequence[str], out: Path, ended: Ended) -> Any:
    del ended
    return {name: (out / name).read_bytes() for name in names}


def read_table(out: Path, ended: Ended) -> Any:
    """Read the rows of a table; they come in the order of the journal's lines."""
    del ended
    return sorted((out / "told-defences.md").read_text().splitlines())


def read_printed(out: Path, ended: Ended) -> Any:
    return ended.printed.replace(str(out), "")


def read_json(out: Path, ended: Ended) -> Any:
    return without_times(json.loads(read_printed(out, ended)))


def resumed(stage: Stage, form: str, name: str, share: float, *patterns: str) -> Use:
    """Make the use of a command that goes on in a folder where it was killed."""
    scenario = stage.find(name).scenario

    def words(out: Path) -> Words:
        return scenario.command(out, scenario.onward)

    def rescue(out: Path) -> Words:
        return (*scenario.words, "--out", str(out), *OVERWRITE)

    can_overwrite = OVERWRITE in scenario.ways
    return Use(form, half_done(stage, name, share), patterns, words, read_folder, rescue if can_overwrite else None)


def make_uses(stage: Stage) -> list[Use]:
    """List every format that is read back."""
    shared = stage.find("train").scenario.words[1:4]
    capsules = stage.root / "federate" / "capsules"
    attack = ("--attack", "adam-cosine", "--steps", "5", "--quiet", "--out")
    brief = ("--recipe", "fast", "--epochs", "1", "--threads", "1", "--quiet", "--out")
    trained, audited = (finished(stage, stage.find(name).scenario.words, name) for name in ("train", "audit"))
    searched = finished(stage, stage.find("search").scenario.words, "search")
    states = ("resume.safetensors", "curves.jsonl")

    def audit_capsule(out: Path) -> Words:
        return ("audit", *shared, "--capsule", str(out / "round-0001-client-00.safetensors"), *attack, str(out / "a"))

    def train_with(out: Path) -> Words:
        policies = ("--policy", str(out / "policies.json"))
        return ("train", *shared, "--model", "lenet", *policies, *brief, str(out / "t"))

    return [
        resumed(stage, "training state and snapshots", "train", 0.7, *states, "init.*", "epoch-1.*"),
        resumed(stage, "search journal", "search", 0.85, "journal.jsonl"),
        resumed(stage, "search model", "search", 0.6, "model/*"),
        resumed(stage, "audit work", "audit", 0.7, "work/*.*", "work/models/**/*.*"),
        resumed(stage, "federated state and journal", "federate", 0.6, "resume.safetensors", "journal.jsonl"),
        resumed(stage, "reproduce journal", "reproduce", 0.8, "journal.jsonl"),
        resumed(stage, "reproduce model", "reproduce", 0.7, "model/*"),
        Use(
            "checkpoint",
            trained,
            ("final.*",),
            lambda out: ("inspect", str(out / "final.safetensors"), "--json"),
            read_json,
            spare=("epoch-1.*", "init.*"),
        ),
        Use(
            "policies",
            searched,
            ("policies.json",),
            train_with,
            lambda out, _: read_result(out / "t"),
            spare=("model/final.json", "search.json"),
        ),
        Use(
            "capsule",
            capsules,
            ("round-0001-client-00.*",),
            audit_capsule,
            lambda out, _: read_result(out / "a"),
            spare=("round-0003-client-01.*",),
        ),
        Use(
            "audit folder",
            audited,
            ("audit.json", "pictures.safetensors"),
            lambda out: ("report", str(out), "--out", str(out / "again.html")),
            partial(read_files, ["again.html"]),
        ),
        Use(
            "audit folder, verified",
            audited,
            ("audit.*", "pictures.safetensors", "report.html"),
            lambda out: ("report", str(out), "--verify"),
            read_printed,
        ),
        Use(
            "study for its table",
            STUDY,
            ("journal.jsonl",),
            lambda out: ("reproduce", "told-defences", "--table", "--quiet", "--out", str(out)),
            read_table,
        ),
    ]


def damage(use: Use, out: Path, kind: str, source: random.Random) -> Damage:
    """Damage one file of a copy; a swap takes the content of another file of the same kind, if there is one."""
    files = use.files()
    file = source.choice(files)
    content = bytearray((out / file).read_bytes())
    place = source.randrange(len(content))
    others = [one for one in (*files, *use.find(use.spare)) if one != file and one.suffix == file.suffix]
    match kind:
        case "cut off":
            del content[place:]
        case "flipped bits":
            for _ in range(source.choice((1, 1, 1, 2, 3))):
                content[source.randrange(len(content))] ^= 1 << source.randrange(8)
        case "lengthened":
            added = [source.randbytes(20), bytes(content[place : place + 100]), b"\n", bytes(8)]
            if file.suffix == ".jsonl":
                added += 3 * [bytes(source.choice(content.splitlines(keepends=True)))]
            at = source.choice((len(content), place))
            content[at:at] = source.choice(added)
        case "emptied":
            content.clear()
        case "swapped" if others:
            other = source.choice(others)
            (out / file).write_bytes((out / other).read_bytes())
            (out / other).write_bytes(content)
            return Damage(kind, file, other)
        case "swapped" if file.suffix == ".jsonl":
            lines = content.splitlines(keepends=True)
            one, two = source.randrange(len(lines)), source.randrange(len(lines))
            lines[one], lines[two] = lines[two], lines[one]
            content = bytearray(b"".join(lines))
        case _:
            length = source.choice((1, 8, 200))
            content[place : place + length] = source.randbytes(length)
    (out / file).write_bytes(content)
    return Damage(kind, file)


def run_trial(stage: Stage, use: Use, expected: Any, kind: str, seed: int) -> dict[str, Any]:
    """Damage one file and use it: `same` and `refused` survive, whatever else becomes of it is a fault."""
    source = random.Random(f"corrupt {seed}")
    started = time.monotonic()
    line: dict[str, Any] = {"format": use.format, "damage": kind, "seed": seed, "outcome": "fault", "fault": None}
    try:
        with new_place(stage.root) as place:
            shutil.copytree(use.folder, place.out)
            done = damage(use, place.out, kind, source)
            line["file"] = str(done.file)
            ended = run_forked(use.words(place.out), place)
            line["outcome"] = judge(use, expected, place, ended, done)
            if line["outcome"] == "refused":
                line["said"] = ended.lines[0].replace(str(place.out), "…")[:300]
                if use.rescue is not None and seed % RESCUES == 0:
                    saved = run_forked(use.rescue(place.out), place)
                    require(saved.code == 0, f"--overwrite ends with {saved.code}: {saved.said[-500:]}")
                    require(not differences(expected, read_result(place.out)), "--overwrite ends with something else")
                    line["rescued"] = True
    except FaultError as error:
        line["outcome"], line["fault"] = "fault", str(error)
    return {**line, "seconds": round(time.monotonic() - started, 2)}


def judge(use: Use, expected: Any, place: Place, ended: Ended, done: Damage) -> str:
    """Tell whether a command survived the damage, or raise what is wrong with it."""
    if ended.code == 0:
        found = use.read(place.out, ended)
        if found == expected:
            return "same"
        if is_untouched(expected, found, done):
            return "not read"
        shorter = expect_shorter(use, place, done)
        require(found == shorter, f"a silent difference after {done}: {describe_difference(expected, found)}")
        return "same"
    is_line = len(ended.lines) == 1 and ended.lines[0].startswith("gradveil: ")
    require(ended.code == 2 and is_line, f"{done} ends with {ended.code}: {ended.said[-900:]}")
    require(done.is_named_in(ended.lines[0]), f"{done} is not named: {ended.lines[0]}")
    return "refused"


def is_untouched(expected: Any, found: Any, done: Damage) -> bool:
    """Tell whether all is the same but the damaged files themselves, which the command had no need of."""
    if not isinstance(expected, dict) or not isinstance(found, dict):
        return False
    return set(differences(expected, found)) <= {str(done.file), str(done.also)}


def expect_shorter(use: Use, place: Place, done: Damage) -> Any:
    """Find the table of a journal that lost its end: it is that of an earlier moment, and nothing can tell."""
    whole, damaged = (use.folder / done.file).read_bytes(), (place.out / done.file).read_bytes()
    lines = damaged[: damaged.rfind(b"\n") + 1]
    if done.file.suffix != ".jsonl" or not lines or not whole.startswith(lines):
        return None
    shutil.rmtree(place.out)
    shutil.copytree(use.folder, place.out)
    (place.out / done.file).write_bytes(lines)
    return use.read(place.out, run_forked(use.words(place.out), place))


def describe_difference(expected: Any, found: Any) -> str:
    if isinstance(expected, dict) and isinstance(found, dict):
        return str(differences(expected, found))
    return f"{str(found)[:200]!r}"


@contextmanager
def prepared_uses() -> Iterator[tuple[Stage, list[tuple[Use, Any]]]]:
    """Make the folders of all formats, and run every command once on an undamaged copy."""
    with prepared_stage() as stage:
        uses = []
        for use in make_uses(stage):
            require(bool(use.files()), f"nothing to damage of {use.format} in {use.folder}")
            with new_place(stage.root) as place:
                shutil.copytree(use.folder, place.out)
                ended = run_forked(use.words(place.out), place)
                require(ended.code == 0, f"{use.format}, undamaged, ends with {ended.code}: {ended.said}")
                uses.append((use, use.read(place.out, ended)))
        check_resumed(stage, uses)
        yield stage, uses


def check_resumed(stage: Stage, uses: Sequence[tuple[Use, Any]]) -> None:
    """Require that a resumed folder, undamaged, ends with what an undisturbed command ends with."""
    results: list[Reference] = list(stage.references)
    for use, expected in uses:
        if use.read is read_folder:
            require(any(expected == one.result for one in results), f"{use.format} ends with something else")


def run(folder: Path, minutes: float) -> None:
    """Damage one file after the other until the time is over; formats and kinds of damage take turns."""
    journal = Journal(folder / JOURNAL)
    lines = journal.read()
    seed = max((line["seed"] + 1 for line in lines), default=0)
    stop = time.monotonic() + 60 * minutes
    with prepared_uses() as (stage, uses):
        failed = {line["seed"]: line for line in lines if line["outcome"] == "fault"}
        again = [number for number in failed if {line["seed"]: line for line in lines}[number]["outcome"] == "fault"]
        while time.monotonic() < stop:
            number = again.pop(0) if again else seed
            seed += number == seed
            use, expected = uses[number % len(uses)]
            line = run_trial(stage, use, expected, KINDS[number // len(uses) % len(KINDS)], number)
            journal.append({**line, "made_by": provenance()})
            if line["outcome"] == "fault" or number % 50 == 0:
                print(number, line["format"], line["damage"], line["outcome"], line["fault"] or "", flush=True)
