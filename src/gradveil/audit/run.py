"""One audit under way: train, attack look by look, confirm, and put the report together."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gradveil.audit.arm_notes import describe_arm
from gradveil.audit.canaries import CanaryReading
from gradveil.audit.candidates import Candidates, choose_candidates
from gradveil.audit.floors import FloorSettings, make_floors
from gradveil.audit.forms import ATTACKED, TRAINED
from gradveil.audit.jobs import Attacked, CellJob, TrainJob
from gradveil.audit.kept import KeptWork, run_jobs
from gradveil.audit.learning import describe_given, find_unlearnt
from gradveil.audit.release import Scene, Share
from gradveil.audit.report import AuditReport
from gradveil.audit.scoring import Scorer
from gradveil.audit.under_way import CellKey, CellUnderWay, cut, name_job
from gradveil.audit.verdict import Verdict, confirm_rows, decide, judge, share_test
from gradveil.client import Weights
from gradveil.defences import Arm, build_defended
from gradveil.training import TrainingResult, accuracy
from gradveil.workers import Crew

if TYPE_CHECKING:
    from gradveil.audit.audit import Audit

OnProgress = Callable[[str, float], None]
"""Called with the stage and the share of it that is done."""
Trained = Mapping[str, TrainingResult]
WAVE = 32
"""Images of a cell that are attacked before they are scored: what scoring does not need is dropped then."""


class AuditRun:
    """One audit under way."""

    def __init__(
        self,
        audit: "Audit",
        crew: Crew,
        device: str,
        progress: OnProgress,
        keep_history: bool = False,
        frames: int = 0,
        kept: KeptWork | None = None,
    ) -> None:
        self.audit, self.settings = audit, audit.settings
        self.crew, self.device, self.progress = crew, device, progress
        self.keep_history, self.frames, self.kept = keep_history, frames, kept
        self.rounds = audit.shares()
        # A round is attacked as a whole.
        self.size = max(1, self.settings.group // self.settings.images_per_round)

    def train(self, models: Path | None) -> dict[str, TrainingResult]:
        """Train one model for each arm, unless only given weights and the first ones are attacked."""
        audit, settings = self.audit, self.settings
        phases = audit.trained_phases
        if set(phases) <= {"init"}:
            return {}
        clients = audit.clients()
        jobs = {
            f"train {arm.name}": TrainJob(
                audit.spec,
                clients,
                settings.training,
                arm,
                phases,
                settings.seed,
                self.device,
                None if models is None else models / arm.name,
            )
            for arm in audit.arms
        }
        results = run_jobs(self.crew, self.kept, jobs, TRAINED, self.watch("training", len(jobs)))
        return {arm.name: result for arm, result in zip(audit.arms, results, strict=True)}

    def scorers(self) -> dict[str, Scorer]:
        """Make ready what the rebuilt images of every arm are scored with."""
        audit, settings = self.audit, self.settings
        known = settings.labels == "known"
        floors = make_floors(
            audit.data,
            audit.arms,
            FloorSettings(settings.floor_images, known, settings.images_per_round, settings.seed),
            lambda share: self.progress("chance floors", share),
        )
        labels = audit.data.test.labels[list(audit.places)]
        pool = choose_candidates(audit.data, audit.places, labels, settings.seed)
        return {
            arm.name: Scorer(
                floors[arm.name],
                Candidates(pool, arm, floors[arm.name], settings.seed),
                settings.rule.epsilon,
                known,
                settings.seed,
            )
            for arm in audit.arms
        }

    def attack(self, trained: Trained, scorers: Mapping[str, Scorer]) -> AuditReport:
        """Attack every arm in every phase with every attack, look by look, and judge the results."""
        settings = self.settings
        keys: list[CellKey] = [
            (arm, phase, name) for phase in settings.phases for arm in self.audit.arms for name in settings.attacks
        ]
        found = {key: CellUnderWay(key[0].name, key[1], key[2]) for key in keys}
        test = share_test(settings.rule, len(keys))
        going, looks = keys, list(self.looks())
        for number, look in enumerate(looks, 1):
            stage = "attacking" if len(looks) == 1 else f"attacking, look {number} of {len(looks)}"
            self.attack_rounds({key: found[key] for key in going}, look, trained, scorers, stage)
            if settings.stop_early:
                going = [key for key in going if decide(found[key].cell(), test)[0] is None]
        accuracies = {arm: result.test_accuracy for arm, result in trained.items()}
        verdict = judge([found[key].cell() for key in keys], settings.rule, settings.kind, accuracies)
        verdict = self.confirm(keys, verdict, trained, scorers, accuracies)
        attacked = tuple(one for key in keys for one in found[key].attacked)
        return self.report(verdict, attacked, trained, scorers, self.read_canaries(keys, trained))

    def looks(self) -> Iterator[range]:
        """Divide the rounds: those of the first look, then one group at a time if a certain answer ends the attacks."""
        rounds, size = len(self.rounds), self.settings.images_per_round
        wave = max(self.size, WAVE // size // self.size * self.size)
        first = max(1, -(-self.settings.first_look // size)) if self.settings.stop_early else wave
        later = self.size if self.settings.stop_early else wave
        yield range(min(first, rounds))
        for start in range(first, rounds, later):
            yield range(start, min(start + later, rounds))

    def attack_rounds(
        self,
        cells: Mapping[CellKey, CellUnderWay],
        look: range,
        trained: Trained,
        scorers: Mapping[str, Scorer],
        stage: str,
    ) -> None:
        """Attack some rounds of some cells, and score what was rebuilt, round by round."""
        groups = [look[start : start + self.size] for start in range(0, len(look), self.size)]
        work = [(key, group) for key in cells for group in groups]
        jobs = {
            name_job("attack", key, group): self.cell_job(key, [self.rounds[place] for place in group], trained)
            for key, group in work
        }
        results = run_jobs(self.crew, self.kept, jobs, ATTACKED, self.watch(stage, len(jobs)))
        for (key, _), attacked in zip(work, results, strict=True):
            for together in cut(attacked, self.settings.images_per_round):
                cells[key].add(scorers[key[0].name], together)
        if not self.keep_history:
            for cell in cells.values():
                cell.drop_pictures(self.frames)

    def confirm(
        self,
        keys: Sequence[CellKey],
        verdict: Verdict,
        trained: Trained,
        scorers: Mapping[str, Scorer],
        accuracies: Mapping[str, float],
    ) -> Verdict:
        """Attack single images that seem to leak once more with other draws; judge again with what that gives."""
        hits = [
            (place, self.round_of(image))
            for place, one in enumerate(verdict.summaries)
            if one.outcome == "some"
            for image in one.hits
        ]
        work = list(dict.fromkeys(hits))
        if not work:
            return verdict
        jobs = {
            name_job("confirm", keys[place], [number]): self.cell_job(
                keys[place], [self.rounds[number]], trained, attempt=1
            )
            for place, number in work
        }
        results = run_jobs(self.crew, self.kept, jobs, ATTACKED, self.watch("confirming", len(jobs)))
        cells = list(verdict.cells)
        for (place, _), attacked in zip(work, results, strict=True):
            arm, phase, name = keys[place]
            again = scorers[arm.name].score_cell(arm.name, phase, name, [attacked])
            reached = {row.image: row.reached is True for row in again.rows}
            cells[place] = confirm_rows(cells[place], reached)
        return judge(cells, self.settings.rule, self.settings.kind, accuracies)

    def read_canaries(self, keys: Sequence[CellKey], trained: Trained) -> tuple[CanaryReading, ...]:
        """Attack the cards in every cell, and read what was rebuilt of them."""
        if not self.settings.canaries:
            return ()
        canaries = self.audit.canaries()
        places = range(len(canaries.rounds))
        groups = [places[start : start + self.size] for start in range(0, len(places), self.size)]
        work = [(key, group) for key in keys for group in groups]
        jobs = {
            name_job("canary", key, group): self.cell_job(key, [canaries.rounds[place] for place in group], trained)
            for key, group in work
        }
        results = run_jobs(self.crew, self.kept, jobs, ATTACKED, self.watch("canaries", len(jobs)))
        readings: list[CanaryReading] = []
        for ((arm, phase, name), _), attacked in zip(work, results, strict=True):
            readings += canaries.read((arm.name, phase, name), attacked)
        return tuple(readings)

    def round_of(self, image: int) -> int:
        return self.audit.places.index(image) // self.settings.images_per_round

    def cell_job(
        self, key: CellKey, rounds: Sequence[tuple[Share, ...]], trained: Trained, attempt: int = 0
    ) -> CellJob:
        """Make the job that attacks a group of rounds of one arm, phase and attack."""
        arm, phase, name = key
        audit, settings = self.audit, self.settings
        scene = Scene(
            audit.spec,
            self.weights(trained, arm, phase),
            arm,
            phase,
            settings.local,
            audit.others,
            settings.labels == "known",
            settings.knows_defence,
            settings.seed,
        )
        return CellJob(
            scene,
            tuple(rounds),
            audit.attacks[name],
            name,
            audit.public_for(name),
            self.device,
            self.keep_history,
            attempt,
            self.frames > 0 and attempt == 0,
        )

    def weights(self, trained: Trained, arm: Arm, phase: str) -> Weights:
        if phase in self.audit.weights:
            return self.audit.weights[phase]
        if trained:
            return trained[arm.name].snapshots[phase]
        return build_defended(self.audit.spec, arm.defences, self.settings.seed).state_dict()

    def report(
        self,
        verdict: Verdict,
        attacked: tuple[Attacked, ...],
        trained: Trained,
        scorers: Mapping[str, Scorer],
        canaries: tuple[CanaryReading, ...],
    ) -> AuditReport:
        audit, settings = self.audit, self.settings
        guarantees = {arm: result.guarantee for arm, result in trained.items()}
        told = audit.attacks.values() if settings.knows_defence else ()
        return AuditReport(
            settings,
            verdict,
            {arm: scorer.floors.kinds() for arm, scorer in scorers.items()},
            {arm: result.test_accuracy for arm, result in trained.items()},
            {arm: result.seconds for arm, result in trained.items()},
            {
                arm.name: describe_arm(arm, audit.spec, settings.seed, guarantees.get(arm.name), told)
                for arm in audit.arms
            },
            audit.data.class_names,
            {name: attack.needs for name, attack in audit.attacks.items()},
            sum(parameter.numel() for parameter in audit.model.parameters()),
            (*dict.fromkeys(notice for one in attacked for notice in one.notices), *self.learning(trained)),
            attacked,
            canaries,
        )

    def learning(self, trained: Trained) -> Iterator[str]:
        """Say which weights have learnt nothing, and how good given ones are."""
        test = self.audit.data.test
        chance = float(test.labels.bincount().max()) / len(test)
        yield from find_unlearnt({arm: one.test_accuracy for arm, one in trained.items()}, chance, len(test))
        for weights in self.audit.weights.values():
            model = build_defended(self.audit.spec, self.audit.arms[0].defences, self.settings.seed)
            model.load_state_dict(dict(weights))
            yield describe_given(accuracy(model.eval(), test, self.device), chance, len(test))

    def watch(self, stage: str, jobs: int) -> Callable[[int, int, int], None]:
        """Turn the reports of single jobs into the share of the stage that is done."""
        shares = [0.0] * jobs

        def note(position: int, done: int, total: int) -> None:
            shares[position] = done / total
            self.progress(stage, math.fsum(shares) / jobs)

        return note
