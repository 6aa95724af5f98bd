"""The audit of captured rounds: attack what a capsule holds, and score it where the truth is at hand."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from gradveil.attacks import Attack
from gradveil.audit.arm_notes import describe_arm
from gradveil.audit.audit import PUBLIC, name_attacks
from gradveil.audit.candidates import Candidates, choose_candidates
from gradveil.audit.floors import FloorSettings, make_floors
from gradveil.audit.jobs import Attacked, attack_rounds
from gradveil.audit.pairing import share_out
from gradveil.audit.preflight import find_notices, measure_match
from gradveil.audit.report import AuditReport
from gradveil.audit.rule import Rule
from gradveil.audit.scoring import Scorer
from gradveil.audit.settings import AuditSettings
from gradveil.audit.sightings import attack_sightings
from gradveil.audit.verdict import judge
from gradveil.capsule import CapsulePaths, read_capsule, read_truth
from gradveil.data import DataSet, choose_public
from gradveil.defences import Arm, Defence
from gradveil.errors import DataError, SettingsError
from gradveil.rounds import Captured, Round, Truth
from gradveil.training import BRIEF
from gradveil.types import Reconstruction

OnProgress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class CapsuleAudit:
    """Captured rounds of one run, of the same model and defences, and how they are attacked.

    `data` gives the public images and the chance floors; images that the truth names are left out of both. With
    `together` the rounds of one client that show as many images of the same labels are attacked as one, and scored
    once, in its first round.
    """

    rounds: Mapping[str, Round]
    truths: Mapping[str, tuple[Truth, ...]]
    data: DataSet
    attacks: Mapping[str, Attack] = field(default_factory=dict)
    floor_images: int | None = None
    seed: int = 0
    rule: Rule = field(default_factory=Rule)
    together: bool = False
    code: Mapping[str, str] = field(default_factory=dict)
    arm_name: str | None = None

    def __post_init__(self) -> None:
        if not self.rounds:
            raise SettingsError("no capsule to audit: give at least one")
        first = next(iter(self.rounds.values()))
        for name, one in self.rounds.items():
            if (one.spec.name, one.known_defences) != (first.spec.name, first.known_defences):
                raise SettingsError(f"{name} is of another model or arm than the others: audit each run on its own")
        if first.spec.shape != self.data.shape or first.spec.classes != self.data.classes:
            raise SettingsError(
                f"the capsules are of images of {first.spec.shape} in {first.spec.classes} classes, {self.data.name} "
                f"has {self.data.shape} in {self.data.classes}: choose the data they were made of"
            )

    @property
    def arm(self) -> Arm:
        """The defences that the capsules name, as an arm; whoever ran the training may know its name."""
        defences = next(iter(self.rounds.values())).known_defences
        return Arm(self.arm_name or ",".join(map(str, defences)) or "none", defences)

    def public_data(self) -> DataSet:
        """Leave out of the training split every image that the truth names."""
        victims = {truth.image for truths in self.truths.values() for truth in truths}
        left = [place for place in range(len(self.data.train)) if place not in victims]
        if not left:
            raise SettingsError(
                f"the capsules' clients hold all {len(self.data.train)} training images: none is left to be public, so "
                "audit fewer clients"
            )
        return replace(self.data, train=self.data.train.take(torch.tensor(left)))

    def attack(self, device: str = "cpu", progress: OnProgress | None = None) -> dict[str, dict[str, Reconstruction]]:
        """Attack every capsule with every attack: attack → capsule → what was rebuilt."""
        left = self.public_data()
        if self.together:
            public = choose_public(left, PUBLIC, self.seed).batch()
            return {
                name: attack_sightings(self.rounds, attack, name, public=public, seed=self.seed, device=device)
                for name, attack in self.attacks.items()
            }
        total, done = len(self.rounds) * len(self.attacks), 0
        results: dict[str, dict[str, Reconstruction]] = {name: {} for name in self.attacks}
        for name, attack in self.attacks.items():
            public = choose_public(left, max(PUBLIC, attack.public_images), self.seed).batch()
            for capsule, one in self.rounds.items():
                (results[name][capsule],) = attack_rounds(
                    [one], attack, name, public=public, seed=self.seed, device=device, report=lambda *_: None
                )
                done += 1
                if progress is not None:
                    progress("attacking", done / total)
        return results

    def run(self, device: str = "cpu", progress: OnProgress | None = None) -> AuditReport:
        """Attack and score; every capsule needs its truth."""
        missing = [name for name in self.rounds if name not in self.truths]
        if missing:
            raise DataError(f"{missing[0]} has no truth beside it: keep it with --keep-truth, or audit without scores")
        started = time.perf_counter()
        results = self.attack(device, progress)
        scored = list(next(iter(results.values())))
        images = sum(self.rounds[capsule].update.images for capsule in scored) * len(self.attacks)
        seconds = (time.perf_counter() - started) / images
        scorer, cells, attacked = self.scorer(), [], []
        for phase, capsules in self.phases().items():
            for name in self.attacks:
                found = [capsule for capsule in capsules if capsule in results[name]]
                rounds = [self.pair(capsule, results[name][capsule], seconds, device) for capsule in found]
                if not rounds:
                    continue
                cells.append(scorer.score_cell(self.arm.name, phase, name, rounds))
                attacked += [one for together in rounds for one in together]
        settings, first = self.settings(scored), next(iter(self.rounds.values()))
        notices = [notice for one in attacked for notice in one.notices]
        if self.together:
            notices.append(f"{len(self.rounds)} rounds were attacked together: {len(scored)} sets of images")
        return AuditReport(
            settings,
            judge(cells, settings.rule, settings.kind),
            {self.arm.name: scorer.floors.kinds()},
            {},
            {},
            {self.arm.name: describe_arm(self.arm, first.spec, self.seed, None, self.attacks.values())},
            self.data.class_names,
            {name: attack.needs for name, attack in self.attacks.items()},
            sum(tensor.numel() for tensor in first.update.tensors.values()),
            tuple(dict.fromkeys(notices)),
            tuple(attacked),
        )

    def phases(self) -> dict[str, list[str]]:
        """List the capsules of each phase, in the order of the rounds."""
        found: dict[str, list[str]] = {}
        for capsule, one in sorted(self.rounds.items(), key=lambda pair: number_of(pair[1].phase)):
            found.setdefault(one.phase, []).append(capsule)
        return found

    def scorer(self) -> Scorer:
        """Make ready what the rebuilt images are scored with; nothing of it is an image of the clients."""
        data, first = self.public_data(), next(iter(self.rounds.values()))
        known = first.update.labels is not None
        settings = FloorSettings(self.floor_images, known, first.update.images, self.seed)
        floors = make_floors(data, [self.arm], settings, lambda _: None)[self.arm.name]
        labels = torch.tensor([truth.label for truths in self.truths.values() for truth in truths])
        pool = choose_candidates(data, (), labels, self.seed)
        candidates = Candidates(pool, self.arm, floors, self.seed)
        return Scorer(floors, candidates, self.rule.epsilon, known, self.seed)

    def pair(self, capsule: str, result: Reconstruction, seconds: float, device: str) -> list[Attacked]:
        """Pair the rebuilt images of a capsule with the true ones."""
        captured = Captured(self.rounds[capsule], self.truths[capsule])
        notices = find_notices(captured, self.arm, device)
        match = measure_match(captured, self.arm, result, device)
        pairs = zip(captured.truths, share_out(result, captured.transformed()), strict=True)
        return [
            Attacked(truth, replace(one, history=(), similarities=(), pictures=()), seconds, seconds, notices, *match)
            for truth, one in pairs
        ]

    def settings(self, scored: Sequence[str]) -> AuditSettings:
        """Describe the audit for its report; `scored` are the capsules that have a result."""
        rounds = [self.rounds[capsule] for capsule in scored]
        first = rounds[0]
        local = first.update.local
        images = sum(one.update.images for one in rounds)
        return AuditSettings(
            data=self.data.name,
            model=first.spec.name,
            arms=(self.arm.name,),
            phases=tuple(dict.fromkeys(one.phase for one in rounds)),
            attacks=tuple(self.attacks),
            images=images,
            images_per_client=max(1, first.update.images // first.participants),
            participants=first.participants,
            local=replace(local, batch_size=None) if not local.takes_steps else local,
            labels="hidden" if first.update.labels is None else "known",
            knows_defence=bool(first.known_defences),
            training=replace(BRIEF, loss=str(local.loss)),
            floor_images=self.floor_images,
            stop_early=False,
            rule=self.rule,
            seed=self.seed,
            code=dict(self.code),
        )


def number_of(phase: str) -> int:
    """Read the round from the name of its phase; 0 if it names none.

    >>> number_of("round-12"), number_of("init")
    (12, 0)
    """
    number = phase.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def load_capsules(
    paths: Sequence[Path],
    data: DataSet,
    attacks: Sequence[str | Attack] | Mapping[str, Attack] = ("fast",),
    *,
    truths: Sequence[Path] | None = None,
    steps: int | None = None,
    model: str | nn.Module | None = None,
    seed: int = 0,
    together: bool = False,
    own: Mapping[str, Defence] | None = None,
) -> CapsuleAudit:
    """Read capsules and their truths, which lie beside them unless `truths` names them, and look the attacks up.

    `own` holds defences of a person's own, by what capsules write of them.
    """
    named = name_attacks(attacks)
    rounds = {CapsulePaths.of(path).tensors.stem: read_capsule(path, model, own) for path in paths}
    beside = [path for path in paths if CapsulePaths.of(path).truth.exists()]
    known = {CapsulePaths.of(path).tensors.stem: tuple(read_truth(path)) for path in truths or beside}
    chosen = {name: attack if steps is None else attack.with_steps(steps) for name, attack in named.items()}
    return CapsuleAudit(rounds, known, data, chosen, None, seed, together=together)
