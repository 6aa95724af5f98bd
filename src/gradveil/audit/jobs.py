"""The jobs of an audit: train a model under an arm, and attack what clients of that arm release."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from gradveil.attacks import Attack
from gradveil.audit.pairing import share_out
from gradveil.audit.preflight import DRAWN_ANEW, find_notices, is_drawn_anew, measure_match
from gradveil.audit.release import Scene, Share
from gradveil.data import DataSet
from gradveil.defences import Arm, build_defended
from gradveil.errors import KnowledgeError
from gradveil.models import ModelSpec
from gradveil.rng import generator, global_state_from
from gradveil.rounds import Captured, Round, Truth
from gradveil.training import TrainingResult, TrainingSettings, is_unfinished, train
from gradveil.types import Batch, Reconstruction
from gradveil.workers import Report


@dataclass(frozen=True, eq=False)
class TrainJob:
    """Train the model under one arm; every arm starts from the same weights.

    In a `folder` the run is kept: it goes on where it was stopped, and one that was finished is not run again.
    """

    spec: ModelSpec
    data: DataSet
    settings: TrainingSettings
    arm: Arm
    phases: tuple[str, ...]
    seed: int
    device: str
    folder: Path | None = None

    def run(self, report: Report) -> TrainingResult:
        return train(
            build_defended(self.spec, self.arm.defences, self.seed),
            self.data,
            self.settings,
            defences=self.arm.defences,
            seed=self.seed,
            phases=self.phases,
            device=self.device,
            folder=self.folder,
            spec=self.spec,
            resume=self.folder is not None and is_unfinished(self.folder),
            progress=lambda state: report(state.step, state.steps),
        )


@dataclass(frozen=True, eq=False)
class Attacked:
    """What one attack made of one image, what is true of it, and what the check before the attack noticed.

    `seconds` and `processor_seconds` are the image's share of the time that its group took. `match_rebuilt` and
    `match_truth` are those of its round, see `measure_match`.
    """

    truth: Truth
    reconstruction: Reconstruction
    seconds: float
    processor_seconds: float
    notices: tuple[str, ...] = ()
    match_rebuilt: float | None = None
    match_truth: float | None = None


@dataclass(frozen=True, eq=False)
class CellJob:
    """Let some clients release their updates, attack these, and pair the results with the truth.

    `clients` has a group of clients for each round: one, or as many as are aggregated. What the attack noted on its way
    is dropped unless `keep_history`; with `keep_pictures` its pictures stay. `attempt` counts the attacks on the same
    release; each has its own draws.
    """

    scene: Scene
    clients: tuple[tuple[Share, ...], ...]
    attack: Attack
    attack_name: str
    public: Batch
    device: str
    keep_history: bool = False
    attempt: int = 0
    keep_pictures: bool = False

    def run(self, report: Report) -> list[Attacked]:
        captured = [self.scene.capture(shares, self.device) for shares in self.clients]
        started, processor = time.perf_counter(), time.process_time()
        results = attack_rounds(
            [one.round for one in captured],
            self.attack,
            self.attack_name,
            public=self.public,
            seed=self.scene.seed,
            device=self.device,
            report=report,
            attempt=self.attempt,
        )
        images = sum(len(one.truths) for one in captured)
        seconds, processor = (time.perf_counter() - started) / images, (time.process_time() - processor) / images
        notices = self.check(captured[0])
        attacked = []
        for one, together in zip(captured, results, strict=True):
            match = measure_match(one, self.scene.arm, together, self.device)
            for truth, result in zip(one.truths, share_out(together, one.transformed()), strict=True):
                attacked.append(Attacked(truth, self.annotate(result, one.round), seconds, processor, notices, *match))
        return attacked

    def check(self, captured: Captured) -> tuple[str, ...]:
        with global_state_from(generator(self.scene.seed, "preflight")):
            return find_notices(captured, self.scene.arm, self.device)

    def annotate(self, result: Reconstruction, one: Round) -> Reconstruction:
        """Name every approximation of the attack, and drop the way to its result unless it is to be kept."""
        if is_drawn_anew(one, self.scene.arm):
            result = replace(result, approximations=(*result.approximations, DRAWN_ANEW))
        if self.keep_history:
            return result
        return replace(result, history=(), similarities=(), pictures=result.pictures if self.keep_pictures else ())


def attack_rounds(
    rounds: Sequence[Round],
    attack: Attack,
    name: str,
    *,
    public: Batch,
    seed: int,
    device: str,
    report: Report,
    attempt: int = 0,
) -> list[Reconstruction]:
    """Attack rounds of the same weights; this sees nothing but what was released and what is public."""
    task = rounds[0].task(public, device)
    stream = ("attack", name) if attempt == 0 else ("attack", name, "attempt", attempt)
    sources = [generator(seed, *stream, one.client) for one in rounds]
    # A model that draws, as PRECODE's, draws in the attacker's hands from a stream of its own.
    with global_state_from(generator(seed, *stream, "model", rounds[0].client)):
        try:
            return attack.attack_many(task, [one.update.to(device) for one in rounds], sources, report)
        except KnowledgeError as error:
            return [refusal(one, str(error)) for one in rounds]


def refusal(one: Round, reason: str) -> Reconstruction:
    """Make the result of an attack that cannot be used on a round."""
    images, shape = one.update.images, one.spec.shape
    labels = torch.zeros(images, dtype=torch.int64)
    return Reconstruction(torch.zeros(images, *shape), labels, float("inf"), "refused", reason=reason)
