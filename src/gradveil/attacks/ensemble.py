"""Several attacks as one: every image gets the result that matches best (after AutoAttack, Croce and Hein, 2020)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch

from gradveil.attacks.base import Attack, Progress
from gradveil.attacks.judging import fed_of, judge, rank
from gradveil.attacks.matching import GradientMatching
from gradveil.defences import known_policies
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.rng import split
from gradveil.types import Reconstruction, Task, Update

log = logging.getLogger(__name__)
SHARE = 1000
EXACT = 1e-6
"""Below this the loss is that of rounding: float32 tells no nearer gradients apart."""


@dataclass(frozen=True)
class Ensemble(Attack):
    """Run every member that can be used and keep, image by image, what matches best by one common measure.

    Members take their turn in their order; an image that one has matched exactly is none of the next ones' business.
    Members that look through a known policy give the original image, the others what the model was fed. If a policy is
    known, `images` comes from the former and `fed` from the best of all.
    """

    members: Mapping[str, Attack]

    def __post_init__(self) -> None:
        if not self.members:
            raise SettingsError("an ensemble without members: name at least one attack")
        object.__setattr__(self, "members", MappingProxyType(dict(self.members)))

    def __reduce__(self) -> tuple[type["Ensemble"], tuple[dict[str, Attack]]]:
        # A read-only mapping cannot be pickled, and attacks travel to worker processes.
        return Ensemble, (dict(self.members),)

    @property
    def needs(self) -> tuple[str, ...]:
        known = [need for member in self.members.values() for need in member.needs]
        return (*dict.fromkeys(known), "only members whose needs are met take part")

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        if not self.usable(task, updates):
            raise KnowledgeError(f"none of {', '.join(self.members)} can be used on this update")

    def usable(self, task: Task, updates: Sequence[Update]) -> dict[str, Attack]:
        """Keep the members whose needs are met."""
        found = {}
        for name, member in self.members.items():
            try:
                member.check(task, updates)
            except KnowledgeError as error:
                log.info("'%s' takes no part: %s", name, error)
            else:
                found[name] = member
        return found

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        self.check(task, updates)
        members = self.usable(task, updates)
        # Every member has its own stream, whether or not the others take part.
        sources = [
            dict(zip(self.members, split(generator, len(self.members)), strict=True)) for generator in generators
        ]
        looks = {name: isinstance(member, GradientMatching) and member.knows_policy for name, member in members.items()}
        found: list[list[Candidate]] = [[] for _ in updates]
        for place, (name, member) in enumerate(members.items()):
            report = None if progress is None else part_of(progress, place, len(members))
            # What has been matched to the last digit cannot be matched better; through a policy there is more to find.
            rows = [row for row, mine in enumerate(found) if looks[name] or not any(one.is_exact for one in mine)]
            if not rows and report is not None:
                report(1, 1)
            if rows:
                chosen = [updates[row] for row in rows]
                results = member.attack_many(task, chosen, [sources[row][name] for row in rows], report)
                for row, result in zip(rows, results, strict=True):
                    found[row].append(make_candidate(task, updates[row], result, looks[name]))
        return [choose(task, mine) for mine in found]


def part_of(progress: Progress, place: int, parts: int) -> Progress:
    """Report one member's progress as a part of the whole; members count steps of different kinds."""
    return lambda done, total: progress(place * SHARE + done * SHARE // total, parts * SHARE)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One member's result, its loss by the common measure and its rank, and whether it looks through a policy."""

    result: Reconstruction
    loss: float
    rank: float
    looks: bool

    @property
    def is_exact(self) -> bool:
        return self.loss < EXACT


def make_candidate(task: Task, update: Update, result: Reconstruction, looks: bool) -> Candidate:
    loss = judge(task, update, result)
    return Candidate(result, loss, rank(task, update, result, loss), looks)


def choose(task: Task, candidates: Sequence[Candidate]) -> Reconstruction:
    """Keep the best of one image's results; its loss is the common one."""
    best = min(candidates, key=lambda one: one.rank)
    through = [one for one in candidates if one.looks]
    if known_policies(task.known_defences) is None or not through:
        return replace(best.result, matching_loss=best.loss)
    original = min(through, key=lambda one: one.rank)
    return replace(original.result, matching_loss=original.loss, fed=fed_of(best.result))
