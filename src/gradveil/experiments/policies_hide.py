"""Does a policy hide the original from someone who knows it? Which trials are run, and how one is run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradveil.attacks import find_attack
from gradveil.audit import Attacked, Audit, AuditReport, AuditSettings
from gradveil.data import DataSet, choose_private, choose_public
from gradveil.experiments.versions import PRESENT, versions_of
from gradveil.journal import Journal
from gradveil.metrics import AlignedTargets
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import FAST, TrainingSettings
from gradveil.workers import Report, Workers

ATTACK = "learned"
PHASES = ("init", "final")
POLICIES = ("3-1-7", "43-18-18", "3-1-7+43-18-18")
RANDOM_POLICIES = 10
SEEDS = 3
TRAINING = replace(FAST, epochs=6, test_every=6, threads=1)
IMAGES = 200
KEPT = (
    *("image", "label", "status", "reason", "psnr_original", "floor_original", "aligned_original"),
    *("aligned_floor_original", "advantage_original", "identified_original", "crowd", "rank", "candidates", "seconds"),
)
"""What the journal keeps of a row; the attack gives no picture of T(x) to be scored."""


@dataclass(frozen=True)
class HideTrial:
    """One arm, trained and attacked with one seed; the attacker learns from `public` images, clients from `private`."""

    arm: str
    seed: int
    images: int = IMAGES
    public: int = 10_000
    private: int = 10_000
    model: str = "lenet-relu"

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def trials() -> Iterator[HideTrial]:
    """Seed by seed: the policies alone, the controls, the policies on top of crop and flip; then random policies."""
    for seed in range(SEEDS):
        alone = [f"policy:{policy},no-base" for policy in POLICIES]
        yield from (HideTrial(arm, seed) for arm in (*alone, "none", "crop-flip"))
        yield from (HideTrial(f"policy:{policy}", seed) for policy in POLICIES)
    for number in range(RANDOM_POLICIES):
        yield HideTrial(f"random-policy:{number}", 0)


@dataclass(eq=False)
class HideStudy:
    """A folder with a journal and the models; every trial is run at most once."""

    folder: Path
    data: DataSet | None
    training: TrainingSettings = TRAINING

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")

    def run(self, chosen: Sequence[HideTrial], progress: OnProgress) -> None:
        """Run the trials that the journal does not have."""
        assert self.data is not None
        described = {"data": self.data.name, "training": self.training.to_record(), **PRESENT}
        items = [
            WorkItem({"trial": one.to_record(), "study": described}, TrialRun(self, one), f"{one.arm}, seed {one.seed}")
            for one in chosen
        ]
        with Workers(1) as crew:
            run_missing(self.journal, items, crew, progress, "trials", identify)

    def run_trial(self, trial: HideTrial, report: Report) -> dict[str, Any]:
        """Train under the arm, let the attacker learn, and attack."""
        assert self.data is not None
        audit = make_audit(self.data, trial, self.training)
        models = self.folder / "models" / f"seed-{trial.seed}"
        audited = audit.run(progress=lambda _, share: report(round(100 * share), 100), models=models)
        return {
            "test_accuracy": audited.accuracies[audited.settings.arms[0]],
            "phases": {phase: describe(audited, phase) for phase in PHASES},
        }


def make_audit(data: DataSet, trial: HideTrial, training: TrainingSettings) -> Audit:
    """Make the audit of a trial; public images, those of the clients' training, and attacked ones are all different."""
    public, private = share_images(len(data.train), trial)
    ours = choose_public(data, public, trial.seed)
    clients = replace(data, train=choose_private(data, private, trial.seed, public=public))
    settings = AuditSettings(
        model=trial.model,
        arms=(trial.arm,),
        phases=PHASES,
        attacks=(ATTACK,),
        images=trial.images,
        knows_defence=True,
        training=training,
        group=trial.images,
        stop_early=False,
        seed=trial.seed,
    )
    audit = Audit(settings, data=clients, attacks={ATTACK: find_attack(ATTACK)})
    audit.public = ours.batch()
    return audit


def share_images(images: int, trial: HideTrial) -> tuple[int, int]:
    """Say how many training images are the attacker's and the clients'; a small data set is halved."""
    public = min(trial.public, images // 2)
    return public, min(trial.private, images - public)


def describe(audited: AuditReport, phase: str) -> dict[str, Any]:
    """Return what the journal keeps of a phase: rows, and the scores of updates swapped within the class."""
    pairs = [pair for pair in zip(audited.rows, audited.attacked, strict=True) if pair[0].phase == phase]
    records = [row.to_record() for row, _ in pairs]
    sound = [(record, one) for record, (row, one) in zip(records, pairs, strict=True) if row.status == "ok"]
    return {
        "rows": [{name: record[name] for name in KEPT} for record in records],
        "swapped": swap([one for _, one in sound], [record["aligned_floor_original"] for record, _ in sound]),
    }


def swap(attacked: Sequence[Attacked], floors: Sequence[float]) -> list[dict[str, Any]]:
    """Score each picture against the image whose update it is, and against the next one of the same class.

    Both are aligned gains over the floors, the images' own. A picture is `identified` if its image fits best among the
    attacked images of the class, `swapped_identified` if the next one does among all the others.
    """
    labels = torch.tensor([one.truth.label for one in attacked])
    found: dict[int, dict[str, Any]] = {}
    for label in torch.unique(labels).tolist():
        places = (labels == label).nonzero().flatten().tolist()
        if len(places) > 2:
            gains = score_class([attacked[place] for place in places]) - torch.tensor([floors[at] for at in places])
            found.update({place: compare(gains, at) for at, place in enumerate(places)})
    return [found[place] for place in sorted(found)]


def score_class(attacked: Sequence[Attacked]) -> Tensor:
    """Score every picture of a class, rows, against every image of it, columns."""
    images = torch.cat([one.truth.original for one in attacked])
    fill = (images.sum(0, keepdim=True) - images) / (len(images) - 1)
    targets, every = AlignedTargets(images, fill), torch.arange(len(images))
    return torch.stack([targets.score(one.reconstruction.images, every) for one in attacked])


def compare(gains: Tensor, at: int) -> dict[str, Any]:
    """Compare one picture's gain at its own image with that at the next image of the class."""
    following = (at + 1) % len(gains)
    others = torch.ones(len(gains), dtype=torch.bool)
    others[[at, following]] = False
    own, wrong, rest = gains[at, at], gains[at, following], gains[at, others]
    return {
        "gain": round(float(own), 4),
        "identified": bool(own > wrong) and bool((own > rest).all()),
        "swapped_gain": round(float(wrong), 4),
        "swapped_identified": bool((wrong > rest).all()),
    }


def identify(line: Mapping[str, Any]) -> object:
    return [line["trial"], line["study"], versions_of(line)]


@dataclass(frozen=True, eq=False)
class TrialRun:
    """One trial as a job."""

    study: HideStudy
    trial: HideTrial

    def run(self, report: Report) -> dict[str, Any]:
        return self.study.run_trial(self.trial, report)
