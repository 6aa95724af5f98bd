"""Learning to invert (after Wu et al., UAI 2023): the map from released updates back to original images.

The attacker lets clients of its own work on public images, under every defence it knows of, and learns which picture
goes with which update. Nothing is specific to a defence, so nothing has to be invented against a new one.

Differs from Wu et al.: what entered linear layers is read off and joins the sketch, and a linear map is learnt beside
the network; the better one on public images that neither has seen is used.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gradveil.attacks.base import Attack, Progress
from gradveil.attacks.features import Features
from gradveil.attacks.labels import check_labels, find_labels
from gradveil.attacks.ranking import Comparison
from gradveil.attacks.regression import SHARES, LastColumns, Moments, Regression, choose, train_network
from gradveil.attacks.rehearsal import Rehearsal, Released
from gradveil.attacks.singly import attack_singly
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.rng import generator
from gradveil.types import Batch, LocalTraining, Reconstruction, Task, Update

log = logging.getLogger(__name__)
LEAST = 10
"""With fewer public images there is nothing to learn from."""
CALIBRATION = 256
HELD_OUT = 1000
NARROW, NORM_EPOCHS = 64, 30
"""Width and epochs of the network that learns from norms alone; it is quick."""


@final
@dataclass(frozen=True)
class Learned(Attack):
    """Learn to invert updates of single images on public images, then invert the released ones.

    Every public image is released `draws` times under a defence that draws, once otherwise. The network has two layers
    of `width` and learns from about `rows` examples; with 0 `epochs` there is none. What is learnt depends on `seed`
    and on nothing of the attacked updates but how they were made, so one training serves all. The picture is one of the
    original x, not of T(x).
    """

    draws: int = 3
    width: int = 512
    epochs: int = 8
    rows: int = 12_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws < 1 or self.width < 1 or self.epochs < 0 or self.rows < 1:
            raise SettingsError(
                f"{self.draws} draws, width {self.width}, {self.epochs} epochs, {self.rows} rows: "
                "give 0 or more epochs and at least 1 of the others"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        return (
            "public images of the same kind, thousands if possible",
            "updates of one image each",
            "labels, or to read them",
        )

    @property
    def inverts_policy(self) -> bool:
        return True

    @property
    def needs_known_defence(self) -> bool:
        return False

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        if task.public is None or len(task.public) < LEAST:
            found = 0 if task.public is None else len(task.public)
            raise KnowledgeError(
                f"this attack learns from public images and the task has {found}: give it {LEAST} or more"
            )
        if task.participants > 1:
            raise KnowledgeError(
                f"the update is the mean of {task.participants} clients': this attack takes those of one"
            )
        if not updates or any(
            one.local != updates[0].local or one.tensors.keys() != updates[0].tensors.keys() for one in updates
        ):
            raise KnowledgeError("updates of different kinds, or none: give at least one, all made in the same way")
        for update in updates:
            if update.images > 1:
                raise KnowledgeError(f"the update is of {update.images} images: this attack takes updates of 1 image")
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


@dataclass(frozen=True, eq=False)
class Inverter:
    """What was learnt for one task: a map from features to the difference from the mean picture of the class."""

    features: Features
    regression: Regression
    means: Tensor
    held_out: float
    """Mean PSNR, in dB, on public images that were not learnt from."""

    def invert(self, comparison: Comparison, update: Update) -> Reconstruction:
        """Rebuild the image of one update; the matching loss is that of the picture as if it had been fed."""
        task = comparison.task
        labels = find_labels(task, update)
        seen = self.features({name: tensor[None] for name, tensor in update.tensors.items()}, labels)
        flat = self.means[labels.cpu()] + self.regression(seen)
        images = flat.clamp(0, 1).view(1, *task.shape).to(update.device)
        if not all(bool(tensor.isfinite().all()) for tensor in update.tensors.values()):
            return Reconstruction(images, labels, float("inf"), "failed", reason="the update is not finite")
        loss = comparison.matching_loss(update, images, labels)
        return Reconstruction(images, labels, loss, history=((0, loss),))


CACHED = 8
cache: dict[str, Inverter] = {}
"""The inverters learnt last. An audit attacks one task in several calls, group by group, and learning takes far longer
than attacking. The key covers all that learning depends on, so that what is found here is what would be learnt."""


def find_inverter(attack: Learned, task: Task, updates: Sequence[Update], report: Callable[[float], None]) -> Inverter:
    """Return the inverter for such updates; learn it unless that was done lately."""
    names, local = tuple(updates[0].tensors), updates[0].local
    key = digest(attack, task, local, names)
    if key not in cache:
        cache[key] = Lesson(attack, task, local, names).learn(report)
        for oldest in list(cache)[:-CACHED]:
            del cache[oldest]
    return cache[key]


def digest(attack: Learned, task: Task, local: LocalTraining, names: Sequence[str]) -> str:
    """Hash all that learning depends on."""
    assert task.public is not None
    found = hashlib.sha256(repr((attack, task.known_defences, local.to_record(), list(names), task.shape)).encode())
    state = task.model.state_dict()
    for tensor in (*(state[name] for name in sorted(state)), task.public.images, task.public.labels):
        found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


@dataclass(frozen=True, eq=False)
class Examples:
    """Features of updates, the mean pictures of their classes, and how far the images are from these; all N×…."""

    features: Tensor
    base: Tensor
    gaps: Tensor

    def __len__(self) -> int:
        return len(self.features)

    @staticmethod
    def join(parts: "Sequence[Examples]") -> "Examples":
        """Put examples one after the other."""
        return Examples(*(torch.cat(column) for column in zip(*(vars(part).values() for part in parts), strict=True)))


class Lesson:
    """Learns an inverter from public images."""

    def __init__(self, attack: Learned, task: Task, local: LocalTraining, names: Sequence[str]) -> None:
        assert task.public is not None
        self.attack, self.task, self.names = attack, task, names
        order = torch.randperm(len(task.public), generator=generator(attack.seed, "learned", "order"))
        public = task.public.to("cpu").take(order)
        held = min(HELD_OUT, max(2, len(public) // 10))
        self.learnt, self.held = public.take(slice(held, None)), public.take(slice(0, held))
        self.rehearsal = Rehearsal(task, local, public)
        self.draws = attack.draws if task.known_defences else 1
        self.means = class_means(self.learnt, task.classes)

    def learn(self, report: Callable[[float], None]) -> Inverter:
        """Learn the linear map and the network; keep what is best on images that were held out."""
        features = self.calibrate()
        moments, kept = Moments(), list[Examples]()
        parts = self.draws * -(-len(self.learnt) // self.rehearsal.chunk)
        for done, part in enumerate(self.examples(features, self.learnt, "learnt", self.draws), 1):
            moments.add(part.features, part.gaps)
            if self.attack.epochs and sum(map(len, kept)) < self.attack.rows:
                kept.append(part)
            report(0.7 * done / parts)
        regressions: list[Regression] = [moments.solve(share) for share in SHARES]
        if kept:
            rows = Examples.join(kept)
            source = generator(self.attack.seed, "learned", "network")
            regressions.append(train_network(rows.features, rows.gaps, self.attack.width, self.attack.epochs, source))
            regressions.append(self.learn_norms(rows, features.telling))
        held = Examples.join(list(self.examples(features, self.held, "held out", 1)))
        best, score = choose(regressions, held.features, held.base, held.base + held.gaps)
        log.info("%d examples: %s, %.2f dB on held-out public images", moments.count, type(best).__name__, score)
        report(1.0)
        return Inverter(features, best, self.means, score)

    def learn_norms(self, rows: "Examples", columns: int) -> Regression:
        """Learn from the norms and labels alone: among thousands of features that say nothing they would be lost."""
        source = generator(self.attack.seed, "learned", "norms")
        few = rows.features[:, -columns:]
        return LastColumns(columns, train_network(few, rows.gaps, NARROW, NORM_EPOCHS, source))

    def calibrate(self) -> Features:
        """Find the scales of the features on the first images."""
        first = self.learnt.take(slice(0, CALIBRATION))
        released = [(one.tensors, one.fed.labels) for _, one in self.release(first, "calibration", 1)]
        return Features.fit(self.task, self.names, self.attack.seed, released)

    def examples(self, features: Features, batch: Batch, stream: str, draws: int) -> Iterator["Examples"]:
        """Yield examples part by part."""
        for part, released in self.release(batch, stream, draws):
            labels = released.fed.labels.cpu()
            base = self.means[labels]
            yield Examples(features(released.tensors, labels), base, part.pixels().flatten(1) - base)

    def release(self, batch: Batch, stream: str, draws: int) -> Iterator[tuple[Batch, Released]]:
        """Release updates of the images, part by part, each image once for every draw."""
        size = self.rehearsal.chunk
        for draw in range(draws):
            for start in range(0, len(batch), size):
                part = batch.take(slice(start, start + size))
                yield part, self.rehearsal.release(part, generator(self.attack.seed, "learned", stream, draw, start))


def class_means(batch: Batch, classes: int) -> Tensor:
    """Return the mean picture of each class, flat; of all images if the class has none."""
    pixels = batch.pixels().flatten(1)
    sums = torch.zeros(classes, pixels.shape[1]).index_add_(0, batch.labels, pixels)
    counts = torch.bincount(batch.labels, minlength=classes)[:, None]
    return torch.where(counts > 0, sums / counts.clamp(min=1), pixels.mean(0))
