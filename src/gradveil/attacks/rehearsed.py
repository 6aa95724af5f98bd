"""Choose among members by what they did on images of the attacker's own.

The lowest matching loss does not pick the best picture: members with other priors reach other losses for pictures as
good, and a picture that was learnt matches badly and is near all the same. Before it chooses, the attacker lets clients
of its own work on public images, under every defence it knows of, attacks what they release, and sees what it gets.
"""

import hashlib
import logging
from collections.abc import Sequence
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
    combine,
    is_matched,
    transforms_images,
)
from gradveil.attacks.examples import class_means
from gradveil.attacks.forecasts import Criterion, Tried, learn_fed, learn_original, options, pick_fed
from gradveil.attacks.ranking import transformed_of
from gradveil.attacks.rehearsal import Rehearsal, Released
from gradveil.errors import SettingsError
from gradveil.metrics import align, psnr
from gradveil.rng import generator, split
from gradveil.types import Batch, Reconstruction, Task, Update

log = logging.getLogger(__name__)
LEAST = 10
"""Fewer public images than this are not divided."""


@final
@dataclass(frozen=True)
class Rehearsed(Choice):
    """Rehearse on `images` public images, learn there which member to trust, and at which loss.

    For each target, T(x) and x, a forecast of every member's score is fitted (see `Forecast`). For T(x) it chooses if
    it chose better than the lowest loss in the rehearsal, every image judged by what the others taught; an exact match
    is always taken. For x it is the picture of T(x), unless in the rehearsal a member that looks for x itself was
    clearly better. The members never see the rehearsed images among the public ones, not even on the targets:
    whoever learns from public images would else look better than it is.

    Updates of several images, of several participants or under defences that mix images are not rehearsed: there, and
    without public images, the lowest loss chooses.
    """

    images: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        if self.images < 3:
            raise SettingsError(f"a rehearsal on {self.images} images: give 3 or more")

    @property
    def needs(self) -> tuple[str, ...]:
        return ("public images to rehearse on, or else the lowest loss chooses",)

    @property
    def rehearsed_images(self) -> int:
        return self.images

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


@dataclass(frozen=True, eq=False)
class Experience:
    """What a rehearsal taught."""

    fed: Criterion
    original: Criterion

    def choose(self, task: Task, candidates: Sequence[MemberResult]) -> Reconstruction:
        """Choose among the results on one update."""
        exact = is_matched(candidates)
        fed = min(candidates, key=lambda one: one.rank) if exact else pick_fed(self.fed, candidates)
        if not (transforms_images(task) and fed.is_sound):
            return combine(fed, None, candidates)
        choices = options(fed, candidates)
        return combine(fed, self.original.pick(choices) or choices[0], candidates)


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
    fed = learn_fed(tried)
    experience = Experience(fed, learn_original(tried, fed))
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
    means = class_means(others.to("cpu"), int(others.labels.max()) + 1).view(-1, *originals.shape[1:])
    fills = means[batch.labels.clamp(max=len(means) - 1)]
    return [
        [tried(one, *(part[at : at + 1] for part in (fed, originals, fills))) for one in own if one.is_sound]
        for at, own in enumerate(results)
    ]


def tried(one: MemberResult, fed: Tensor, original: Tensor, fill: Tensor) -> Tried:
    shown = transformed_of(one.result).cpu()
    pictures = [one.result.images] if one.result.transformed is None else [one.result.images, shown]
    aligned = [float(align(picture, original, fill).psnr) for picture in pictures]
    return Tried(one, float(psnr(shown, fed)), aligned[0], aligned[-1])
