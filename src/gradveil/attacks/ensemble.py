"""Several attacks as one: every image gets the result that matches best (after AutoAttack, Croce and Hein, 2020)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

import torch

from gradveil.attacks.base import Attack, Progress, layers_draw_like, make_failure
from gradveil.attacks.choices import Choice, LowestLoss, MemberResult, is_matched, list_reasons, transforms_images
from gradveil.attacks.ranking import Comparison
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.rng import split
from gradveil.types import Reconstruction, Task, Update

log = logging.getLogger(__name__)
SHARE = 1000
"""Units of progress that every member has."""


@final
@dataclass(frozen=True)
class Ensemble(Attack):
    """Run every member that can be used and keep, image by image, what `choice` takes: the best match by default.

    Members take their turn in their order. Later members skip an image that is already matched exactly. If a policy is
    known, the result has the guess of T(x) that matches best of all, and the guess of x that matches best among the
    members that do not look through the policy: a picture of T(x) (see `choose_original`). A choice that rehearses
    decides both by what the members did on public images.
    """

    members: Mapping[str, Attack]
    choice: Choice = field(default_factory=LowestLoss)

    def __post_init__(self) -> None:
        if not self.members:
            raise SettingsError("an ensemble without members: name at least one attack")
        object.__setattr__(self, "members", MappingProxyType(dict(self.members)))

    def __reduce__(self) -> tuple[type["Ensemble"], tuple[dict[str, Attack], Choice]]:
        # A read-only mapping cannot be pickled, and attacks travel to worker processes.
        return Ensemble, (dict(self.members), self.choice)

    @property
    def needs(self) -> tuple[str, ...]:
        known = [need for member in self.members.values() for need in member.needs]
        return (*dict.fromkeys(known), *self.choice.needs, "only members whose needs are met take part")

    def refusals(self, task: Task, updates: Sequence[Update]) -> dict[str, str]:
        """Say of each member that cannot be used why not."""
        reasons = {}
        for name, member in self.members.items():
            try:
                member.check(task, updates)
            except KnowledgeError as error:
                reasons[name] = str(error)
        return reasons

    def usable(self, task: Task, updates: Sequence[Update]) -> dict[str, Attack]:
        """Keep the members whose needs are met."""
        refusals = self.refusals(task, updates)
        for name, reason in refusals.items():
            log.info("'%s' takes no part: %s", name, reason)
        return {name: member for name, member in self.members.items() if name not in refusals}

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        refusals = self.refusals(task, updates)
        if len(refusals) == len(self.members):
            raise KnowledgeError(f"none of the members can be used on this update: {list_reasons(refusals)}")

    @property
    def gradients_per_step(self) -> int:
        return 1 if any(member.gradients_per_step for member in self.members.values()) else 0

    @property
    def inverts_policy(self) -> bool:
        return any(member.inverts_policy for member in self.members.values())

    @property
    def public_images(self) -> int:
        return max(member.public_images for member in self.members.values())

    @property
    def rehearsed_images(self) -> int:
        return self.choice.rehearsed_images

    @property
    def weighs_noise(self) -> bool:
        return any(member.weighs_noise for member in self.members.values())

    @property
    def needs_known_defence(self) -> bool:
        return all(member.needs_known_defence for member in self.members.values())

    def with_steps(self, steps: int) -> Attack:
        """Set the steps of every member that takes any; one whose steps take several gradients gets fewer."""
        if self.gradients_per_step == 0:
            return super().with_steps(steps)
        return self.change_stepping(lambda member: member.with_steps(max(1, steps // member.gradients_per_step)))

    @property
    def gradients(self) -> int:
        members = self.members.values()
        return sum(member.gradients for member in members if not member.needs_known_defence)

    def with_budget(self, gradients: int) -> Attack:
        """Share a number of gradients out among the members that take steps, in proportion to their own numbers.

        Those that need to know a defence are scaled alike, on top.
        """
        if self.gradients_per_step == 0:
            return super().with_budget(gradients)
        whole = self.gradients or sum(member.gradients for member in self.members.values())
        return self.change_stepping(lambda member: member.with_budget(max(1, member.gradients * gradients // whole)))

    def change_stepping(self, change: Callable[[Attack], Attack]) -> "Ensemble":
        """Change the members that take steps; the others stay as they are."""
        members = {
            name: change(member) if member.gradients_per_step else member for name, member in self.members.items()
        }
        return Ensemble(members, self.choice)

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        self.check(task, updates)
        shown, rehearsed = self.choice.task_for_members(task, updates), self.choice.rehearses(task, updates)
        targets = None if progress is None or not rehearsed else first_part(progress, len(updates), rehearsed)
        results = self.run_members(shown, updates, generators, targets or progress)
        judge = self.choice.judge(task, updates, results, Understudy(self, shown))
        if targets is not None and progress is not None:
            progress(1, 1)
        return [judge(own) for own in results]

    def run_members(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[list[MemberResult]]:
        """Let every member that can be used attack every update that is not matched exactly yet."""
        members = self.usable(task, updates)
        # Every member has its own stream, whether or not the others take part.
        sources = [
            dict(zip(self.members, split(generator, len(self.members)), strict=True)) for generator in generators
        ]
        comparison = Comparison(task)
        candidates: list[list[MemberResult]] = [[] for _ in updates]
        for place, (name, member) in enumerate(members.items()):
            report = None if progress is None else part_of(progress, place, len(members))
            # What has been matched to the last digit cannot be matched better; before a transformation there is more.
            goes_on = member.inverts_policy and transforms_images(task)
            rows = [row for row, own in enumerate(candidates) if goes_on or not is_matched(own)]
            if not rows and report is not None:
                report(1, 1)
            if rows:
                results = run_member(
                    member, task, [updates[row] for row in rows], [sources[row][name] for row in rows], report
                )
                for row, result in zip(rows, results, strict=True):
                    with layers_draw_like(generators[row]):
                        loss = comparison.loss_of(updates[row], result)
                    rank = comparison.rank(updates[row], result, loss)
                    candidates[row].append(MemberResult(name, result, loss, rank, member.inverts_policy))
        return candidates


@dataclass(frozen=True, eq=False)
class Understudy:
    """Lets the members of an ensemble attack updates of the attacker's own."""

    ensemble: Ensemble
    task: Task

    @property
    def members(self) -> Mapping[str, Attack]:
        return self.ensemble.members

    def __call__(self, updates: Sequence[Update], generators: Sequence[torch.Generator]) -> list[list[MemberResult]]:
        return self.ensemble.run_members(self.task, updates, generators)


def first_part(progress: Progress, targets: int, rehearsed: int) -> Progress:
    """Report the attack on the targets as a part of the whole; the rehearsal that follows is the rest."""
    return lambda done, total: progress(done * targets, total * (targets + rehearsed))


def part_of(progress: Progress, place: int, parts: int) -> Progress:
    """Report one member's progress as a part of the whole; members count steps of different kinds."""
    return lambda done, total: progress(place * SHARE + done * SHARE // total, parts * SHARE)


def run_member(
    member: Attack,
    task: Task,
    updates: Sequence[Update],
    generators: Sequence[torch.Generator],
    progress: Progress | None,
) -> list[Reconstruction]:
    """Run one member; if it finds out on the way that it lacks knowledge, that is its failure, not the ensemble's."""
    try:
        return member.attack_many(task, updates, generators, progress)
    except KnowledgeError as error:
        if progress is not None:
            progress(1, 1)
        return [make_failure(task, update, str(error)) for update in updates]
