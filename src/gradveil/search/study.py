"""A search on disk: every score is computed once, written down, and never again."""

import fcntl
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradveil.errors import OutputError, SettingsError
from gradveil.journal import Journal
from gradveil.results import environment
from gradveil.search.evaluate import AccuracyJob, Material, PrivacyJob, Scored, find_score
from gradveil.search.records import FILE, Line, Records, differences, to_json
from gradveil.search.settings import SearchSettings
from gradveil.workers import Crew, Job

JOB_GRADIENTS = 160
"""About how many gradients make up a job: a second or so, and all that a kill can cost for each worker."""
OnProgress = Callable[[str, int, int], None]


class Study:
    """The driver's view of a search: what is known, and how to come to know more.

    Only the driver writes the journal. A strategy asks for scores; those that the journal holds are not computed again,
    so a strategy that is run again from the start takes the same way to the same end.
    """

    def __init__(
        self,
        settings: SearchSettings,
        journal: Journal,
        records: Records,
        crew: Crew,
        material: Material,
        progress: OnProgress,
    ) -> None:
        self.settings, self.journal, self.records = settings, journal, records
        self.crew, self.shared, self.progress = crew, crew.share(material), progress
        self.kind = find_score(settings.score)
        self.block = max(self.kind.block(rule) for rule in (self.kind.rough, self.kind.fine, settings.rule))
        self.images = len(material.images)
        # What was asked for since the start of this run: a strategy that is run again must not know more than before.
        self.fitness: dict[str, float] = {}
        self.noted = list(records.events)
        self.drawn = 0

    def privacy(self, policies: Sequence[str], places: Sequence[int], rule: str, what: str = "S_pri") -> Tensor:
        """Give S_pri, float64 policies×places; NaN where it is not finite."""
        missing = [policy for policy in dict.fromkeys(policies) if self.records.lacks(rule, policy, places)]
        jobs = [
            PrivacyJob(self.shared, tuple(some), tuple(part), rule)
            for part in self.parts(places, rule)
            for some in groups(
                [policy for policy in missing if self.records.lacks(rule, policy, part)],
                JOB_GRADIENTS // (len(part) * self.kind.gradients(rule)),
            )
        ]

        def keep(position: int, found: Scored) -> None:
            job = jobs[position]
            scores = {policy: list(map(to_json, row)) for policy, row in zip(job.policies, found.rows, strict=True)}
            self.write({"privacy": rule, "places": list(job.places), "scores": scores, "seconds": found.seconds})

        self.run(jobs, keep, what)
        rows = [self.records.row(rule, policy, places) for policy in policies]
        return torch.tensor(rows, dtype=torch.float64).view(len(policies), len(places))

    def accuracy(self, policies: Sequence[str], what: str = "S_acc") -> list[float]:
        """Give S_acc of each policy; what is not finite counts as the worst there is."""
        missing = [policy for policy in dict.fromkeys(policies) if policy not in self.records.accuracy]
        jobs = [AccuracyJob(self.shared, (policy,)) for policy in missing]

        def keep(position: int, found: Scored) -> None:
            self.write({"accuracy": {missing[position]: list(map(to_json, found.rows[0]))}, "seconds": found.seconds})

        self.run(jobs, keep, what)
        for policy in policies:
            fitness = self.records.fitness(policy)
            assert fitness is not None
            self.fitness[policy] = fitness
        return [self.fitness[policy] for policy in policies]

    def note(self, event: str, **facts: Any) -> None:
        """Write down how far the strategy is, unless it was before."""
        line = {"event": event, **facts}
        if json.loads(json.dumps(line)) not in self.noted:
            self.write(line)
            self.noted.append(line)

    def write(self, line: Line) -> None:
        self.journal.append(line)
        self.records.take(line)

    def run(self, jobs: Sequence[Job[Scored]], keep: Callable[[int, Scored], None], what: str) -> None:
        """Run jobs and write each result down as it comes."""
        done = 0

        def on_result(position: int, found: Scored) -> None:
            nonlocal done
            keep(position, found)
            done += 1
            self.progress(what, done, len(jobs))

        self.crew.run(jobs, on_result=on_result)

    def parts(self, places: Sequence[int], rule: str) -> list[Sequence[int]]:
        """Cut images into groups for one job each, along the groups that are computed together."""
        size = max(1, JOB_GRADIENTS // self.kind.gradients(rule) // self.block) * self.block
        return groups(sorted(places), size)


def groups(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    step = max(1, size)
    return [items[start : start + step] for start in range(0, len(items), step)]


def open_records(folder: Path, settings: SearchSettings, resume: bool) -> tuple[Journal, Records]:
    """Begin a journal, or go on with one of the same settings."""
    journal = Journal(folder / FILE)
    lines = journal.read()
    described = json.loads(json.dumps(settings.to_record()))
    records = Records()
    for line in lines:
        records.take(line)
    if lines and not resume:
        raise OutputError(f"{folder} holds a search already: go on with --resume, or choose another folder with --out")
    if resume and not lines:
        raise OutputError(f"{folder} holds no search to resume: start one there without --resume")
    if lines and (changed := differences(records.header.get("study", {}), described)):
        raise SettingsError(
            f"the search in {folder} was started with other settings: {'; '.join(changed)}. Resume it with the options "
            "it was started with, or start another in a new folder"
        )
    if not lines:
        header = {"study": described, "environment": environment()}
        journal.append(header)
        records.take(header)
    return journal, records


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Keep a second driver out of a folder while the block runs; a kill lets go of it."""
    with (folder / FILE).open("ab") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OutputError(
                f"another search is at work in {folder}: wait for it, or see --status {folder}"
            ) from error
        yield
