"""Where strategies get scores from: every score is computed once, appended to the journal, and never again."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar, final

import torch
from torch import Tensor

from gradveil.journal import Journal
from gradveil.results import provenance
from gradveil.scores import find_score
from gradveil.search.jobs import AccuracyJob, JobInputs, PrivacyJob
from gradveil.search.records import Line, Records
from gradveil.search.settings import SearchSettings
from gradveil.study import PROVENANCE, OnProgress, WorkItem, run_items, without_provenance
from gradveil.workers import Crew

JOB_GRADIENTS = 160
"""About how many gradients make up a job: a second or so, and all that a kill can cost for each worker."""
Entry = TypeVar("Entry")


class ScoreSource(ABC):
    """The scores of policies, as a strategy asks for them.

    `images` counts the images of S_pri; `known_accuracy` holds S_acc of the policies it was asked for in this run: a
    strategy that is run again must not know more than before.
    """

    def __init__(self, settings: SearchSettings, images: int) -> None:
        self.settings, self.images = settings, images
        self.kind = find_score(settings.score)
        self.block = max(self.kind.block(rule) for rule in (self.kind.rough, self.kind.fine, settings.rule))
        self.known_accuracy: dict[str, float] = {}

    @abstractmethod
    def privacy_scores(self, policies: Sequence[str], places: Sequence[int], rule: str, what: str = "S_pri") -> Tensor:
        """Return S_pri, float64 policies×places; NaN where it is not finite. Progress is reported as `what`."""

    @abstractmethod
    def accuracy_scores(self, policies: Sequence[str], what: str = "S_acc") -> list[float]:
        """Return S_acc of each policy; what is not finite counts as the worst there is."""

    @abstractmethod
    def note(self, event: str, **facts: Any) -> None:
        """Write down how far the strategy is, unless it was written before."""


@final
class ScoreJournal(ScoreSource):
    """Return scores from the journal, or run jobs and append them.

    Only this process writes the journal. A strategy that is run again from the start asks for the same scores, and so
    comes to the same end.
    """

    def __init__(
        self,
        settings: SearchSettings,
        journal: Journal,
        records: Records,
        crew: Crew,
        inputs: JobInputs,
        progress: OnProgress,
    ) -> None:
        super().__init__(settings, len(inputs.inputs.images))
        self.journal, self.records, self.crew, self.progress = journal, records, crew, progress
        self.inputs = crew.share(inputs)

    def privacy_scores(self, policies: Sequence[str], places: Sequence[int], rule: str, what: str = "S_pri") -> Tensor:
        missing = [policy for policy in dict.fromkeys(policies) if self.records.lacks(rule, policy, places)]
        items = []
        for part in self.split_images(places, rule):
            wanted = [policy for policy in missing if self.records.lacks(rule, policy, part)]
            for some in split(wanted, JOB_GRADIENTS // (len(part) * self.kind.gradients(rule))):
                job = PrivacyJob(self.inputs, tuple(some), tuple(part), rule)
                items.append(WorkItem({"privacy": rule, "places": list(part)}, job))
        run_items(self.journal, items, self.crew, self.progress, what, self.records.take)
        rows = [self.records.row(rule, policy, places) for policy in policies]
        return torch.tensor(rows, dtype=torch.float64).view(len(policies), len(places))

    def accuracy_scores(self, policies: Sequence[str], what: str = "S_acc") -> list[float]:
        missing = [policy for policy in dict.fromkeys(policies) if policy not in self.records.accuracy_batches]
        items = [WorkItem({}, AccuracyJob(self.inputs, policy)) for policy in missing]
        run_items(self.journal, items, self.crew, self.progress, what, self.records.take)
        self.known_accuracy |= {policy: self.records.accuracy_score(policy) for policy in policies}
        return [self.known_accuracy[policy] for policy in policies]

    def note(self, event: str, **facts: Any) -> None:
        line = json.loads(json.dumps({"event": event, **facts}))
        if line not in [without_provenance(known) for known in self.records.events]:
            self.write(line)

    def write(self, line: Line) -> None:
        """Append a line, with the software and the machine that made it."""
        self.journal.append({**line, PROVENANCE: provenance()})
        self.records.take(line)

    def split_images(self, places: Sequence[int], rule: str) -> list[Sequence[int]]:
        """Split images into parts for one job each, along the blocks that are computed together."""
        size = max(1, JOB_GRADIENTS // self.kind.gradients(rule) // self.block) * self.block
        return split(sorted(places), size)


def split(entries: Sequence[Entry], size: int) -> list[Sequence[Entry]]:
    """Split entries into parts of `size`, at least 1; the last may be smaller."""
    step = max(1, size)
    return [entries[start : start + step] for start in range(0, len(entries), step)]
