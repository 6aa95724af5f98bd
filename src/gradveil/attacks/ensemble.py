"""Several attacks as one: every image gets the result that matches best (after AutoAttack, Croce and Hein, 2020)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch

from gradveil.attacks.base import Attack, Progress
from gradveil.attacks.judging import best_of, judge
from gradveil.attacks.matching import GradientMatching
from gradveil.attacks.observation import known_policies
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.rng import split
from gradveil.types import Reconstruction, Task, Update

log = logging.getLogger(__name__)
SHARE = 1000


@dataclass(frozen=True)
class Ensemble(Attack):
    """Run every member that can be used and keep, image by image, what matches best by one common measure.

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
        found = []
        for place, (name, member) in enumerate(members.items()):
            report = None if progress is None else part_of(progress, place, len(members))
            found.append(member.attack_many(task, updates, [source[name] for source in sources], report))
        looks = [isinstance(member, GradientMatching) and member.knows_policy for member in members.values()]
        return [
            choose(task, update, [results[place] for results in found], looks) for place, update in enumerate(updates)
        ]


def part_of(progress: Progress, place: int, parts: int) -> Progress:
    """Report one member's progress as a part of the whole; members count steps of different kinds."""
    return lambda done, total: progress(place * SHARE + done * SHARE // total, parts * SHARE)


def choose(task: Task, update: Update, results: Sequence[Reconstruction], looks: Sequence[bool]) -> Reconstruction:
    """Keep the best of one image's results; its loss is the common one."""
    losses = [judge(task, update, result) for result in results]
    best = best_of(results, losses)
    if known_policies(task) is None or not any(looks):
        return replace(results[best], matching_loss=losses[best])
    through = [place for place, look in enumerate(looks) if look]
    original = min(through, key=lambda place: losses[place])
    winner = results[best]
    fed = winner.images if winner.fed is None else winner.fed
    return replace(results[original], matching_loss=losses[original], fed=fed)
