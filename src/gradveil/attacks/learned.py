"""Learning to invert (after Wu et al., UAI 2023): the map from released updates back to original images.

The attacker lets clients of its own work on public images, under every defence it knows of, and learns which picture
goes with which update. Nothing is specific to a defence, so nothing has to be invented against a new one.

Differs from Wu et al.: what entered linear layers is read off and joins the sketch, and a linear map is learnt beside
the network; their best blend on public images that neither has seen is used. The pictures of a batch are learnt one by
one, each from the update and the row of its label, and not as one long vector.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from gradveil.attacks.base import Attack, Progress
from gradveil.attacks.choices import transforms_images
from gradveil.attacks.examples import Examples, class_means
from gradveil.attacks.features import Features
from gradveil.attacks.labels import check_labels, find_labels
from gradveil.attacks.ranking import Comparison
from gradveil.attacks.regression import (
    BLENDS,
    SHARES,
    Blend,
    LastColumns,
    Moments,
    Regression,
    Ridge,
    Stacked,
    choose,
    stack_inputs,
    train_network,
)
from gradveil.attacks.rehearsal import Rehearsal, Released
from gradveil.attacks.singly import attack_singly
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.rng import generator
from gradveil.types import Batch, Reconstruction, Task, Update

log = logging.getLogger(__name__)
LEARNED_VERSION = 2
"""Raised whenever `learned` attacks otherwise than before: results of different versions are not to be compared."""
LEAST = 10
"""With fewer public images there is nothing to learn from."""
CALIBRATION = 256
HELD_OUT = 1000
NARROW, NORM_EPOCHS = 64, 30
"""Width and epochs of the network that learns from norms alone; it is quick."""


@final
@dataclass(frozen=True)
class Learned(Attack):
    """Learn to invert updates on public images, then invert the released ones.

    Every public image is released `draws` times, once if nothing is drawn. The network has two layers of `width` and
    sees every image `epochs` times for each of the draws; with 0 there is no network. An audit gives it up to `public`
    images if it has them. What is learnt depends on `seed` and on nothing of the attacked updates but how they were
    made, so one training serves all. The picture is one of the original x; where a known defence changes the images,
    the linear map gives one of T(x) as well.
    """

    draws: int = 4
    width: int = 768
    epochs: int = 5
    public: int = 5000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws < 1 or self.width < 1 or self.epochs < 0 or self.public < LEAST:
            raise SettingsError(
                f"{self.draws} draws, width {self.width}, {self.epochs} epochs, {self.public} public images: give 0 or "
                f"more epochs, {LEAST} or more public images, and at least 1 of the others"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        return ("public images of the same kind, thousands if possible", "labels, or to read them")

    @property
    def public_images(self) -> int:
        return self.public

    @property
    def inverts_policy(self) -> bool:
        return True

    @property
    def needs_known_defence(self) -> bool:
        return False

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        if task.participants > 1:
            raise KnowledgeError(
                f"the update is the mean of {task.participants} clients': this attack takes those of one"
            )
        if not updates or any(kind_of(one) != kind_of(updates[0]) for one in updates):
            raise KnowledgeError("updates of different kinds, or none: give at least one, all made in the same way")
        least, found = max(LEAST, 4 * updates[0].images), 0 if task.public is None else len(task.public)
        if found < least:
            raise KnowledgeError(
                f"this attack learns from public images and the task has {found}: give it {least} or more"
            )
        for update in updates:
            check_labels(task, update)

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        self.check(task, updates)
        report = progress or (lambda *_: None)
        comparison = Comparison(task)
        # Learning is most of the work: it counts as much as all updates together.
        inverter = find_inverter(self, task, updates, lambda share: report(int(len(updates) * share), 2 * len(updates)))
        return attack_singly(
            updates,
            generators,
            lambda update, _: inverter.invert(comparison, update),
            lambda done, total: report(total + done, 2 * total),
        )


def kind_of(update: Update) -> tuple[object, ...]:
    """Return what updates must have in common to be inverted by one map."""
    return update.local, tuple(update.tensors), update.images


@dataclass(frozen=True, eq=False)
class Inverter:
    """What was learnt for one task: a map from features to the difference from the mean picture of the class."""

    features: Features
    regression: Regression
    means: Tensor
    held_out: float
    """Mean PSNR, in dB, on public images that were not learnt from."""
    fed: Regression | None = None
    """The map to the pictures that the model was fed, if they differ from the originals."""

    def invert(self, comparison: Comparison, update: Update) -> Reconstruction:
        """Rebuild the images of one update; the matching loss is that of the pictures as if they had been fed."""
        task = comparison.task
        labels = find_labels(task, update)
        drawn = self.draw(update, labels.cpu())
        images, fed = (None if one is None else one.view(-1, *task.shape).to(update.device) for one in drawn)
        assert images is not None
        if not all(bool(tensor.isfinite().all()) for tensor in update.tensors.values()):
            return Reconstruction(images, labels, float("inf"), "failed", reason="the update is not finite")
        loss = comparison.matching_loss(update, images if fed is None else fed, labels)
        return Reconstruction(images, labels, loss, transformed=fed, history=((0, loss),))

    def draw(self, update: Update, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """Draw flat pictures of x and of T(x) for each label; those of a batch were learnt in its labels' order."""
        order = labels.argsort(stable=True)
        seen = self.features({name: tensor[None] for name, tensor in update.tensors.items()}, labels[order][None])
        pictures, back = (self.means[labels[order]] + self.regression(seen)).clamp(0, 1), order.argsort()
        return pictures[back], None if self.fed is None else self.fed(seen).clamp(0, 1)[back]


CACHED = 8
cache: dict[str, Inverter] = {}
"""The inverters learnt last. An audit attacks one task in several calls, group by group, and learning takes far longer
than attacking. The key covers all that learning depends on, so that what is found here is what would be learnt."""


def find_inverter(attack: Learned, task: Task, updates: Sequence[Update], report: Callable[[float], None]) -> Inverter:
    """Return the inverter for such updates; learn it unless that was done lately."""
    key = digest(attack, task, updates[0])
    if key not in cache:
        cache[key] = Lesson(attack, task, updates[0]).learn(report)
        for oldest in list(cache)[:-CACHED]:
            del cache[oldest]
    return cache[key]


def digest(attack: Learned, task: Task, update: Update) -> str:
    """Hash all that learning depends on; of the update this is how it was made."""
    assert task.public is not None
    known = (attack, task.known_defences, update.local.to_record(), list(update.tensors), update.images, task.shape)
    found = hashlib.sha256(repr(known).encode())
    state = task.model.state_dict()
    for tensor in (*(state[name] for name in sorted(state)), task.public.images, task.public.labels):
        found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


class Lesson:
    """Learns an inverter for updates like one that was released from public images."""

    def __init__(self, attack: Learned, task: Task, update: Update) -> None:
        assert task.public is not None
        self.attack, self.task, self.names, self.size = attack, task, tuple(update.tensors), update.images
        order = torch.randperm(len(task.public), generator=generator(attack.seed, "learned", "order"))
        public = task.public.to("cpu").take(order)
        held = self.size * max(2, min(HELD_OUT, len(public) // 10) // self.size)
        self.learnt, self.held = public.take(slice(held, None)), public.take(slice(0, held))
        self.rehearsal = Rehearsal(task, update.local, public, self.size)
        self.draws = attack.draws if task.known_defences or self.size > 1 else 1
        self.means = class_means(self.learnt, task.classes)

    def learn(self, report: Callable[[float], None]) -> Inverter:
        """Learn the linear map and the network; keep the blend that is best on images that were held out."""
        features = self.calibrate()
        moments, kept = Moments(), list[Examples]()
        parts = self.draws * -(-len(self.learnt) // self.rehearsal.chunk)
        for done, part in enumerate(self.examples(features, self.learnt, "learnt", self.draws), 1):
            moments.add(part.features, torch.cat([part.gaps, part.fed], 1))
            kept.append(replace(part, features=part.features.half(), fed=part.fed[:, :0]))
            report(0.5 * done / parts)
        held = Examples.join(list(self.examples(features, self.held, "held out", 1)))
        judged = (held.features, held.base, held.base + held.gaps, held.ties if self.size > 1 else None)
        solved = [moments.solve(share) for share in SHARES]
        size = held.gaps.shape[1]
        place, score = choose([one.take(size) for one in solved], *judged)
        best: Regression = solved[place].take(size)
        fed = solved[place].drop(size) if transforms_images(self.task) else None
        log.info("%d examples: ridge, %.2f dB on held-out public images", moments.count, score)
        if self.attack.epochs:
            network = self.train(solved[place], features.tail, kept)
            candidates = [best, network, *(Blend(best, network, share) for share in BLENDS)]
            if features.with_norms:
                candidates.append(self.learn_norms(kept, features.telling))
            place, score = choose(candidates, *judged)
            best = candidates[place]
            log.info("%s, %.2f dB on held-out public images", type(best).__name__, score)
        report(1.0)
        return Inverter(features, best, self.means, score, fed)

    def train(self, first: Ridge, tail: int, kept: Sequence[Examples]) -> Regression:
        """Train the network; where every image has one draw, it sees that as often as all draws together."""
        inputs = torch.cat([stack_inputs(first, tail, part.features.float()) for part in kept])
        rows = Examples.join([replace(part, features=part.features[:, :0]) for part in kept])
        epochs = self.attack.epochs * self.attack.draws // self.draws
        source = generator(self.attack.seed, "learned", "network")
        ties = rows.ties if self.size > 1 else None
        return Stacked(first, tail, train_network(inputs, rows.gaps, self.attack.width, epochs, source, ties=ties))

    def learn_norms(self, kept: Sequence[Examples], columns: int) -> Regression:
        """Learn from the norms and labels alone: among thousands of features that say nothing they would be lost."""
        few = torch.cat([part.features[:, -columns:].float() for part in kept])
        gaps = torch.cat([part.gaps for part in kept])
        source = generator(self.attack.seed, "learned", "norms")
        return LastColumns(columns, train_network(few, gaps, NARROW, NORM_EPOCHS, source))

    def calibrate(self) -> Features:
        """Find the scales of the features on the first images."""
        first = self.learnt.take(slice(0, self.size * CALIBRATION))
        released = [
            (one.tensors, self.fed_for(part, one).labels.cpu().view(-1, self.size))
            for part, one in self.release(first, "calibration", 1)
        ]
        hidden = any(defence.hides_directions for defence in self.task.known_defences)
        return Features.fit(self.task, self.names, self.attack.seed, released, with_norms=hidden)

    def fed_for(self, part: Batch, released: Released) -> Batch:
        """Return what the model was fed for each image; the images themselves if it was fed another number."""
        return released.fed if len(released.fed) == len(part) else part

    def examples(self, features: Features, batch: Batch, stream: str, draws: int) -> Iterator[Examples]:
        """Yield examples part by part."""
        for part, released in self.release(batch, stream, draws):
            fed = self.fed_for(part, released)
            labels = fed.labels.cpu().view(-1, self.size)
            base = self.means[labels.flatten()]
            ties = (torch.arange(len(labels))[:, None] * self.task.classes + labels).flatten()
            seen, gaps = features(released.tensors, labels), part.pixels().flatten(1) - base
            yield Examples(seen, base, gaps, fed.pixels().cpu().flatten(1), ties)

    def release(self, batch: Batch, stream: str, draws: int) -> Iterator[tuple[Batch, Released]]:
        """Release updates of the images, part by part, each image once for every draw; draws mix the clients anew."""
        for draw in range(draws):
            dealt = self.deal(batch, generator(self.attack.seed, "learned", stream, draw))
            for start in range(0, len(dealt), self.rehearsal.chunk):
                part = dealt.take(slice(start, start + self.rehearsal.chunk))
                yield part, self.rehearsal.release(part, generator(self.attack.seed, "learned", stream, draw, start))

    def deal(self, batch: Batch, source: torch.Generator) -> Batch:
        """Deal the images to clients; each client's are in the order of their labels, then of their brightness."""
        if self.size == 1:
            return batch
        order = torch.randperm(len(batch), generator=source)[: len(batch) // self.size * self.size]
        dealt = batch.take(order)
        brightness = dealt.pixels().flatten(1).mean(1)
        keys = (dealt.labels + brightness / 2).view(-1, self.size).argsort(1)
        return dealt.take((keys + torch.arange(0, len(dealt), self.size)[:, None]).flatten())
