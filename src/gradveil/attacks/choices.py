"""How the results of an ensemble's members become one: which of them is taken for T(x), and which for x."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, final

import torch

from gradveil.attacks.ranking import transformed_of
from gradveil.defences import has_hook, known_policies
from gradveil.types import Reconstruction, Task, Update

EXACT = 1e-6
"""Below this the loss is that of rounding: float32 tells no nearer gradients apart."""


@dataclass(frozen=True, eq=False)
class MemberResult:
    """One member's result, its loss by the common measure and its rank, and whether it looked through a policy."""

    member: str
    result: Reconstruction
    loss: float
    rank: float
    inverts_policy: bool

    @property
    def is_sound(self) -> bool:
        return self.result.status == "ok"


class RunMembers(Protocol):
    """Lets the members attack updates of the attacker's own."""

    @property
    def members(self) -> Mapping[str, object]:
        """The members by name."""

    def __call__(self, updates: Sequence[Update], generators: Sequence[torch.Generator]) -> list[list[MemberResult]]:
        """Return every member's result on each update."""


Judge = Callable[[Sequence[MemberResult]], Reconstruction]
"""Makes one result of those of all members on one update."""


class Choice(ABC):
    """A way to choose among the results of members; it sees nothing of a target but its update."""

    @property
    def needs(self) -> tuple[str, ...]:
        """What the attacker must know to choose so."""
        return ()

    @property
    def rehearsed_images(self) -> int:
        """How many images of its own the attacker tries the members on at most."""
        return 0

    def rehearses(self, task: Task, updates: Sequence[Update]) -> int:  # noqa: ARG002
        """Count the updates of its own that the attacker tries the members on first."""
        return 0

    def task_for_members(self, task: Task, updates: Sequence[Update]) -> Task:  # noqa: ARG002
        """Return the task as the members see it."""
        return task

    @abstractmethod
    def judge(
        self, task: Task, updates: Sequence[Update], results: Sequence[Sequence[MemberResult]], run: RunMembers
    ) -> Judge:
        """Prepare to choose among the `results` on some updates of a task; `run` tries the members on others."""


@final
@dataclass(frozen=True)
class LowestLoss(Choice):
    """Take what matches best by one common measure.

    With `looks_through` the picture of x, if a policy is known, is that of a member that looks through it; `standard`
    chose so until version 5.
    """

    looks_through: bool = False

    def judge(
        self,
        task: Task,
        updates: Sequence[Update],  # noqa: ARG002
        results: Sequence[Sequence[MemberResult]],  # noqa: ARG002
        run: RunMembers,  # noqa: ARG002
    ) -> Judge:
        return lambda candidates: choose(task, candidates, self.looks_through)


def is_matched(candidates: Sequence[MemberResult]) -> bool:
    """Tell whether one of the results is exact."""
    return any(one.loss < EXACT for one in candidates)


def transforms_images(task: Task) -> bool:
    """Tell whether a known defence changes the images, so that T(x) and x are two targets."""
    return has_hook(task.known_defences, "batch")


def choose(task: Task, candidates: Sequence[MemberResult], looks_through: bool = False) -> Reconstruction:
    """Keep the best match of one image's results for T(x) and, if a policy is known, for x."""
    best = min(candidates, key=lambda one: one.rank)
    policy = known_policies(task.known_defences) is not None
    original = choose_original(candidates, looks_through) if policy and best.is_sound else None
    return combine(best, original, candidates)


def combine(fed: MemberResult, original: MemberResult | None, candidates: Sequence[MemberResult]) -> Reconstruction:
    """Make one result of the guess of T(x) and that of x, if x is a target of its own; the loss is the common one."""
    result = replace(fed.result, matching_loss=fed.loss)
    if original is not None:
        approximations = tuple(dict.fromkeys((*original.result.approximations, *fed.result.approximations)))
        result = replace(
            original.result,
            matching_loss=original.loss,
            transformed=transformed_of(fed.result),
            approximations=approximations,
        )
    if any(one.is_sound for one in candidates):
        return result
    reasons = list_reasons({one.member: one.result.reason for one in candidates})
    return replace(result, reason=f"every member failed: {reasons}")


def choose_original(candidates: Sequence[MemberResult], looks_through: bool = False) -> MemberResult:
    """Choose the guess of the original: a picture of T(x) is one as well, up to a flip, a shift and the lighting.

    Whoever looks through a policy searches among many draws. Scored with alignment, its picture of x was the worse one
    even where it matched much better, so it is taken only if no other member has a result. Told of a policy, an
    attacker thus does at x what it would do otherwise. With `looks_through` it is the other way round.
    """
    preferred = [one for one in candidates if one.inverts_policy is looks_through and one.is_sound]
    return min(preferred or candidates, key=lambda one: one.rank)


def closeness(loss: float) -> float:
    """Return a loss in decibels: the higher, the nearer; what is nearer than rounding counts as exact."""
    return -10 * math.log10(min(1.0, max(EXACT, loss))) if math.isfinite(loss) else 0.0


def list_reasons(reasons: Mapping[str, str]) -> str:
    """Write down why each member failed."""
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
