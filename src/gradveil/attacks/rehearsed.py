"""Choose among members by what they did on images of the attacker's own.

The lowest matching loss does not pick the best picture: members with other priors reach other losses for pictures as
good, and a picture that was learnt matches badly and is near all the same. Before it chooses, the attacker lets clients
of its own work on public images, under every defence it knows of, attacks what they release, and sees what it gets.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from gradveil.attacks.choices import (
    Choice,
    Judge,
    MemberResult,
    RunMembers,
    choose,
    choose_original,
    closeness,
    combine,
    is_matched,
    transforms_images,
)
from gradveil.attacks.ranking import transformed_of
from gradveil.attacks.rehearsal import Rehearsal, Released
from gradveil.errors import SettingsError
from gradveil.metrics import align, psnr
from gradveil.rng import generator, split
from gradveil.types import Batch, Reconstruction, Task, Update

log = logging.getLogger(__name__)
SPREAD = 30.0
"""How firmly a member's slope is held to that of all: as by so many squared decibels of its losses' spread."""
LEAST = 10
"""Fewer public images than this are not divided."""


@final
@dataclass(frozen=True)
class Rehearsed(Choice):
    """Rehearse on `images` public images, learn there which member to trust, and at which loss.

    For each target, T(x) and x, and each member, the score in dB is predicted as a line over the loss in dB. Either
    these predictions choose, or the lowest loss does: whichever chose better in the rehearsal, every image judged by
    what the others taught. An exact match is always taken for T(x). The members never see the rehearsed images among
    the public ones, not even on the targets: whoever learns from public images would else look better than it is.

    Updates of several images, of several participants or under defences that mix images are not rehearsed: there, and
    without public images, the lowest loss chooses.
    """

    images: int = 6
    seed: int = 0

    def __post_init__(self) -> None:
        if self.images < 3:
            raise SettingsError(f"a rehearsal on {self.images} images: give 3 or more")

    @property
    def needs(self) -> tuple[str, ...]:
        return ("public images to rehearse on, or else the lowest loss chooses",)

    def rehearses(self, task: Task, updates: Sequence[Update]) -> int:
        public = 0 if task.public is None else len(task.public)
        single = all(update.images == 1 for update in updates) and task.participants == 1
        mixes = any(defence.companions for defence in task.known_defences)
        same = len({update.local for update in updates}) == 1
        return self.images if single and same and not mixes and public >= LEAST + self.images else 0

    def task_for_members(self, task: Task, updates: Sequence[Update]) -> Task:
        if not self.rehearses(task, updates):
            return task
        return replace(task, public=self.divide(task)[1])

    def divide(self, task: Task) -> tuple[Batch, Batch]:
        """Divide the public images into those that are rehearsed and those that the members may have."""
        assert task.public is not None
        order = torch.randperm(len(task.public), generator=generator(self.seed, "rehearsed", "images"))
        return task.public.take(order[: self.images]), task.public.take(order[self.images :])

    def judge(
        self, task: Task, updates: Sequence[Update], results: Sequence[Sequence[MemberResult]], run: RunMembers
    ) -> Judge:
        unsettled = transforms_images(task) or not all(map(is_matched, results))
        if not self.rehearses(task, updates) or not unsettled:
            return lambda candidates: choose(task, candidates)
        lesson = find_lesson(self, task, updates[0], run)
        return lambda candidates: lesson.choose(task, candidates)


@dataclass(frozen=True)
class Line:
    """The score, in dB, that a member's result of a given closeness is expected to have."""

    score: float
    closeness: float
    slope: float

    def predict(self, one: MemberResult) -> float:
        return self.score + self.slope * (closeness(one.loss) - self.closeness)


@dataclass(frozen=True, eq=False)
class Tried:
    """What a member did in one rehearsal: its result and its scores at T(x) and, aligned, at x."""

    one: MemberResult
    fed: float
    original: float


@dataclass(frozen=True, eq=False)
class Criterion:
    """What chooses for one target: lines by member, or, if they chose no better in the rehearsal, the lowest loss."""

    lines: Mapping[str, Line]
    trusts_lines: bool
    gain: float
    """How much better the lines chose than the lowest loss, in dB, on rehearsed images that they had not seen."""

    def pick(self, candidates: Sequence[MemberResult]) -> MemberResult | None:
        """Pick a member's result; None if the lowest loss is to choose."""
        known = [one for one in candidates if one.is_sound and one.member in self.lines]
        if not self.trusts_lines or not known:
            return None
        return max(known, key=lambda one: self.lines[one.member].predict(one))


@dataclass(frozen=True, eq=False)
class Experience:
    """What a rehearsal taught."""

    fed: Criterion
    original: Criterion

    def choose(self, task: Task, candidates: Sequence[MemberResult]) -> Reconstruction:
        """Choose among the results on one update."""
        picked = None if is_matched(candidates) else self.fed.pick(candidates)
        fed = picked or min(candidates, key=lambda one: one.rank)
        original = self.original.pick(candidates) or choose_original(candidates)
        return combine(fed, original if transforms_images(task) and fed.is_sound else None, candidates)


cache: dict[str, Experience] = {}
"""What was learnt last, as `learned` keeps its inverters: an audit attacks one task in several calls."""
CACHED = 8


def find_lesson(choice: Rehearsed, task: Task, update: Update, run: RunMembers) -> Experience:
    """Return what a rehearsal for such updates teaches; rehearse unless that was done lately."""
    key = digest(choice, task, update, run)
    if key not in cache:
        cache[key] = rehearse(choice, task, update, run)
        for oldest in list(cache)[:-CACHED]:
            del cache[oldest]
    return cache[key]


def digest(choice: Rehearsed, task: Task, update: Update, run: RunMembers) -> str:
    """Hash all that a rehearsal depends on."""
    assert task.public is not None
    told = (choice, run.members, task.known_defences, update.local.to_record(), list(update.tensors))
    found = hashlib.sha256(repr((*told, task.shape, task.loss, update.labels is None)).encode())
    state = task.model.state_dict()
    for tensor in (*(state[name] for name in sorted(state)), task.public.images, task.public.labels):
        found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def rehearse(choice: Rehearsed, task: Task, update: Update, run: RunMembers) -> Experience:
    """Attack what clients of one's own release for public images, and score it."""
    images, others = choice.divide(task)
    batch = images.to("cpu")
    released = Rehearsal(task, update.local, others).release(batch, generator(choice.seed, "rehearsed", "release"))
    own = [part.to(update.device) for part in take_apart(released, update)]
    results = run(own, split(generator(choice.seed, "rehearsed", "attack"), len(own)))
    tried = score(results, released, batch, others)
    experience = Experience(learn(tried, "fed"), learn(tried, "original"))
    log.info(
        "rehearsed %d images: %+.1f dB at T(x) and %+.1f dB at x by what was learnt, against the lowest loss",
        len(own),
        experience.fed.gain,
        experience.original.gain,
    )
    return experience


def take_apart(released: Released, like: Update) -> list[Update]:
    """Make the updates of single images; their labels are sent along if those of the targets are."""
    labels = released.fed.labels
    return [
        Update(
            {name: tensor[at] for name, tensor in released.tensors.items()},
            1,
            like.local,
            None if like.labels is None else labels[at : at + 1],
        )
        for at in range(len(labels))
    ]


def score(
    results: Sequence[Sequence[MemberResult]], released: Released, batch: Batch, others: Batch
) -> list[list[Tried]]:
    """Score every sound result at what was fed and, aligned, at the original."""
    fed, originals = released.fed.pixels().cpu(), batch.pixels().cpu()
    fill = others.pixels().cpu().mean(0, keepdim=True)
    return [
        [tried(one, fed[at : at + 1], originals[at : at + 1], fill) for one in own if one.is_sound]
        for at, own in enumerate(results)
    ]


def tried(one: MemberResult, fed: Tensor, original: Tensor, fill: Tensor) -> Tried:
    scores = float(psnr(transformed_of(one.result).cpu(), fed))
    return Tried(one, scores, float(align(one.result.images, original, fill).psnr))


def learn(tried: Sequence[Sequence[Tried]], target: str) -> Criterion:
    """Fit the lines, and find out on left-out images whether they choose better than the lowest loss."""
    every = [own for own in tried if own]
    gains = []
    for at, own in enumerate(every):
        lines = fit([*every[:at], *every[at + 1 :]], target)
        known = [part for part in own if part.one.member in lines]
        if known:
            learnt = max(known, key=lambda part: lines[part.one.member].predict(part.one))
            gains.append(getattr(learnt, target) - getattr(lowest_of(own, target), target))
    gain = sum(gains) / max(1, len(gains))
    return Criterion(fit(every, target), gain > 0, gain)


def lowest_of(own: Sequence[Tried], target: str) -> Tried:
    """Return what the lowest loss would choose for a target."""
    plain = [part for part in own if not part.one.inverts_policy] if target == "original" else []
    return min(plain or own, key=lambda part: part.one.rank)


def fit(tried: Sequence[Sequence[Tried]], target: str) -> dict[str, Line]:
    """Fit a line for every member; slopes are held to the one that fits all members best."""
    found: dict[str, tuple[Tensor, Tensor]] = {}
    for name in dict.fromkeys(part.one.member for own in tried for part in own):
        parts = [part for own in tried for part in own if part.one.member == name]
        near = torch.tensor([closeness(part.one.loss) for part in parts], dtype=torch.float64)
        found[name] = near, torch.tensor([getattr(part, target) for part in parts], dtype=torch.float64)
    moments = {name: products(*pair) for name, pair in found.items()}
    shared = sum(both for both, _ in moments.values()) / (sum(own for _, own in moments.values()) + SPREAD)
    return {
        name: Line(
            float(found[name][1].mean()),
            float(found[name][0].mean()),
            max(0.0, (both + SPREAD * shared) / (own + SPREAD)),
        )
        for name, (both, own) in moments.items()
    }


def products(near: Tensor, scores: Tensor) -> tuple[float, float]:
    """Sum the products of the deviations of two variables, and the squares of the first one's."""
    deviation = near - near.mean()
    return float((deviation * (scores - scores.mean())).sum()), float(deviation.square().sum())
