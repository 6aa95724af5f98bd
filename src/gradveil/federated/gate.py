"""A client mod that attacks its own update before it is sent, and sends nothing if the attack succeeds."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from gradveil.attacks import Attack, find_attack
from gradveil.client import make_optimiser
from gradveil.defences import defend_batch
from gradveil.errors import DataError, SettingsError
from gradveil.federated.app_model import AppModel, find_count, find_round_number, is_training
from gradveil.federated.flower import Context, Message
from gradveil.federated.memory import RoundMemory, remembering
from gradveil.federated.mods import CallNext, explain, refuse
from gradveil.metrics import Floor, assign, choose_floor, make_guesses, psnr
from gradveil.rng import generator
from gradveil.rounds import Captured, Round
from gradveil.types import Batch

log = logging.getLogger(__name__)

THRESHOLD = "gradveil-threshold"
# The first finds most leaks, the second those in networks that normalise by the statistics of the client's own batch.
# Images that are close to the mean of their class have a high floor: only the third, longer one gets above that.
SHORT_ATTACKS = (
    find_attack("fast").with_steps(60),
    find_attack("adam-cosine").with_steps(300),
    find_attack("fast").with_steps(200),
)
ALLOWED = 0.5
"""How far the described training may be from the app's: dropout is drawn anew, a wrong rate is further off."""
LEAKS = "an attack rebuilds an image of this client from its update"


@final
class GateMod:
    """Attack every update of this client before it leaves; put it before `DefenceMod`, which it is told of.

    The app hands its images over with `remember`. `others` are images of the client, or public ones of the same kind,
    that are not in the round: an attacker who saw nothing would guess their mean, or their class's. If the rebuilt
    image of any image of the round is nearer to it than that guess by more than `threshold` dB of PSNR, the gate
    refuses, and later attacks are not run. An image that was fed in several forms counts in each.
    `gradveil-threshold` in the node's settings comes before `threshold`. A round that cannot be judged is refused too.
    An attack takes time for every image and local step: rounds of more than `largest` images pass without one.
    """

    def __init__(
        self,
        app: AppModel,
        others: Batch,
        threshold: float = 3.0,
        *,
        attacks: Sequence[Attack] = SHORT_ATTACKS,
        largest: int | None = None,
    ) -> None:
        self.app, self.others, self.threshold = app, others, check_threshold(threshold)
        self.attacks, self.largest = tuple(attacks), largest

    def __call__(self, message: Message, context: Context, call_next: CallNext) -> Message:
        """Let the app work, and judge its reply."""
        if not is_training(message):
            return call_next(message, context)
        try:
            threshold = check_threshold(context.node_config.get(THRESHOLD, self.threshold))
            with remembering() as memory:
                reply = call_next(message, context)
                if reply.has_error() or self.is_too_large(reply):
                    return reply
                advantage = self.measure(message, reply, memory, threshold)
        # Whatever it is, an update that was not judged may not leave.
        except Exception as error:
            return refuse(message, "GateMod", explain(error))
        log.info("an attack on this update is %.1f dB above chance; %.1f dB are allowed", advantage, threshold)
        # The server is not told how well the attack did.
        return reply if advantage <= threshold else refuse(message, "GateMod", LEAKS)

    def is_too_large(self, reply: Message) -> bool:
        """Tell whether a round has more images than the gate attacks."""
        images = find_count(reply.content)
        if self.largest is None or images <= self.largest:
            return False
        log.info("an update of %s images passes without an attack: more than %s", images, self.largest)
        return True

    def measure(self, message: Message, reply: Message, memory: RoundMemory, threshold: float = math.inf) -> float:
        """Attack the reply, and return by how many dB the best rebuilt image is above chance.

        An attack that gets above the threshold is the last one.
        """
        number = find_round_number(message)
        known = (*self.app.defences, *memory.defences)
        released = self.app.read_round(self.app.read_sent(message), reply, number, 0, known)
        truths = memory.truths(self.app, released.update.images)
        self.check_description(released, memory)
        labels = Captured(released, tuple(truths)).transformed().labels
        floor = self.find_floor(torch.cat([truth.original for truth in truths]))
        passes = find_passes(memory, self.app, len(truths))
        best = -math.inf
        for images in self.rebuild(released, labels):
            reached = max_or_nan([advantage_over(floor, images, fed) for fed in passes])
            # A NaN, which no threshold allows, ends the search too.
            best = reached if math.isnan(reached) else max(best, reached)
            if not best <= threshold:
                break
        return best

    def check_description(self, released: Round, memory: RoundMemory) -> None:
        """Refuse a training that is not the described one: the attacks would fail, and the gate would open.

        The server has a say in it, through the run's settings.
        """
        update = released.update
        steps, described = len(memory.labels), update.local.count_steps(update.images)
        change = update.tensors if memory.change is None else self.app.rename(memory.change)
        if steps != described or not distance(self.train_again(released, memory), change) <= ALLOWED:
            raise SettingsError(
                f"the app's training took {steps} steps, the described one takes {described}, or their rates or "
                "losses differ: describe the training as it is, and let remember see every batch once"
            )

    def train_again(self, released: Round, memory: RoundMemory) -> dict[str, Tensor]:
        """Train on the remembered batches as described, and return the change of the weights."""
        model = released.task(None, "cpu").model.train(self.app.local.mode == "train")
        before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
        optimiser = make_optimiser(model, self.app.local)
        for fed, labels in zip(memory.fed, memory.labels, strict=True):
            optimiser.zero_grad()
            self.app.local.loss(model(self.app.to_pixels(fed)), labels).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}

    def rebuild(self, released: Round, labels: Tensor) -> Iterator[Tensor]:
        """Rebuild the images with one attack after the other."""
        task = released.task(None, "cpu")
        # The attacker who is feared most knows the labels.
        update = replace(released.update, labels=labels)
        for attack in self.attacks:
            result = attack(task, update, generator(0, "gate", released.phase))
            if result.status != "ok":
                raise DataError(f"an attack failed, which says nothing about the update: {result.reason}")
            yield result.images

    def find_floor(self, originals: Tensor) -> Floor:
        """Find the best guess without an update, from other images as the pipeline would feed them."""
        others = leave_out(self.others, originals)
        if len(others) < 2:
            raise DataError(
                f"{len(others)} other images are no floor: give the gate 2 or more that are not in the round"
            )
        fed = defend_batch(self.app.defences, others, generator(0, "gate", "floor"))
        guessing, judging = fed.take(slice(0, None, 2)), fed.take(slice(1, None, 2))
        guesses = make_guesses([(guessing.pixels(), guessing.labels)], self.app.classes, labels_known=True)
        return choose_floor(guesses, judging.pixels(), judging.labels, psnr)


def find_passes(memory: RoundMemory, app: AppModel, count: int) -> list[Batch]:
    """Split what the model was fed into passes over the `count` images of the round; the last may overlap another.

    A policy draws anew at every pass, so an attack may rebuild any of the forms that an image had.
    """
    fed, labels = app.to_pixels(torch.cat(memory.fed)), torch.cat(memory.labels)
    starts = [min(start, len(labels) - count) for start in range(0, len(labels), count)]
    return [Batch(fed[start : start + count], labels[start : start + count]) for start in starts]


def advantage_over(floor: Floor, images: Tensor, fed: Batch) -> float:
    """Pair rebuilt images with those of a pass; return by how many dB the best is above chance."""
    paired = images[assign(images, fed.pixels())]
    return float((psnr(paired, fed.pixels()) - psnr(floor.guess(fed.labels), fed.pixels())).max())


def max_or_nan(values: Sequence[float]) -> float:
    """Return the largest value, or NaN if one is NaN, which Python's own maximum may pass over."""
    return math.nan if any(map(math.isnan, values)) else max(values)


def distance(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> float:
    """Return the norm of the difference as a share of the norm of `theirs`."""
    own, other = (torch.cat([part[name].flatten() for name in theirs]) for part in (ours, theirs))
    return float((own - other).norm() / other.norm().clamp(min=1e-30))


def leave_out(others: Batch, images: Tensor) -> Batch:
    """Leave out what is one of `images`, up to the rounding of a normalisation."""
    pixels = others.pixels().flatten(1)
    nearest = torch.stack([(pixels - image).abs().amax(1) for image in images.flatten(1)]).amin(0)
    return others.take(nearest > 1e-3)


def check_threshold(value: object) -> float:
    """Read how many dB above chance are allowed."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(f"{THRESHOLD} is {value!r}: give a number of dB, such as 3")
    return float(value)
