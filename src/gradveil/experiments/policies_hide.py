"""Does a policy hide the original from someone who knows it? Which trials are run, and how one is run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradveil.attacks import LEARNED_VERSION, Attack, GradientMatching, LearnedStart, find_attack
from gradveil.audit import AUDIT_VERSION, Attacked, Audit, AuditReport, AuditSettings
from gradveil.data import IMAGE_CHOICE, DataSet, ImageSet, choose_private, choose_public
from gradveil.defences import known_policies, parse_arm
from gradveil.errors import SettingsError
from gradveil.experiments.versions import CHOICE, KEY, STANDARD
from gradveil.journal import Journal
from gradveil.metrics import AlignedTargets
from gradveil.rng import generator
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import FAST, TrainingSettings
from gradveil.workers import Report, Workers

ATTACKS = ("learned", "matching", "both")
LEARNED = "learned_version"
PHASES = ("init", "final")
MAIN = ("policy:3-1-7", "crop-flip", "none", "policy:3-1-7+43-18-18", "policy:43-18-18")
RUN = {KEY: AUDIT_VERSION, CHOICE: IMAGE_CHOICE, STANDARD: None}
"""The versions that lines are of; `standard` is not run, and `learned` has its own in the lines that it made."""
RANDOM = tuple(f"random-policy:{number}" for number in range(10))
SEEDS = 3
TRAINING = replace(FAST, epochs=6, test_every=6, threads=1)
IMAGES = {
    "lenet-relu": {"learned": 200, "matching": 32, "both": 32},
    "convnet-16": {"learned": 200, "matching": 20, "both": 20},
}
"""How many images are attacked in a trial: learning serves all images of a trial, matching works on each.

With three seeds that is 60 at the least, and two of each class, so that updates can be swapped within it.
"""
SHARES = {"lenet-relu": 5000, "convnet-16": 2000}
"""How many public images the attacker has, and as many others the clients; `convnet-16` takes far longer."""
TURNS = ("learned", "both", "matching")
STEPS = 240
CROWD = 20
KEPT = (
    *("image", "label", "status", "reason", "psnr_original", "floor_original", "aligned_original"),
    *("aligned_floor_original", "advantage_original", "identified_original", "crowd", "rank", "candidates", "seconds"),
)
"""What the journal keeps of a row: the scores at x, since the question is what hides the original."""


@dataclass(frozen=True)
class HideTrial:
    """One arm, trained and attacked with one seed; the attacker has `public` images, clients train on `private`."""

    arm: str
    seed: int
    attack: str = "learned"
    model: str = "lenet-relu"
    images: int = IMAGES["lenet-relu"]["learned"]
    public: int = SHARES["lenet-relu"]
    private: int = SHARES["lenet-relu"]

    def __post_init__(self) -> None:
        if self.attack not in ATTACKS:
            raise SettingsError(f"attack '{self.attack}': choose {', '.join(ATTACKS)}")

    @classmethod
    def of(cls, arm: str, seed: int, attack: str, model: str) -> "HideTrial":
        """Make the trial with the numbers of images that the table has."""
        return cls(arm, seed, attack, model, IMAGES[model][attack], SHARES[model], SHARES[model])

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    def versions(self) -> dict[str, int]:
        """Return the versions that the result depends on; `fast` and `policy-aware` have none of their own."""
        learns = self.attack != "matching"
        return {KEY: AUDIT_VERSION, CHOICE: IMAGE_CHOICE, **({LEARNED: LEARNED_VERSION} if learns else {})}

    def make_attack(self) -> Attack:
        """Make the attack: `learned`, `fast`, or a search that begins at the learnt picture.

        Under a policy that search is for the original, through every draw of the policy; it takes as many steps as
        `fast`. Pixels that the policy moves out of sight stay as they were learnt.
        """
        if self.attack != "both":
            return find_attack({"learned": "learned", "matching": "fast"}[self.attack])
        policies = known_policies(parse_arm(self.arm).defences)
        found = find_attack("fast" if policies is None else "policy-aware")
        assert isinstance(found, GradientMatching)
        return replace(found.with_steps(STEPS), start=LearnedStart())


def trials() -> Iterator[HideTrial]:
    """List every trial, the most telling first.

    One seed of the main arms on the small network, `convnet-16`, the other seeds, then more arms. What begins at the
    learnt picture follows the trial that learnt it where it can, and finds it in memory.
    """
    small, large = SHARES
    first, *others = MAIN
    every = [(arm, seed, attack) for seed in range(SEEDS) for arm in MAIN for attack in TURNS]
    more = [(arm, seed, attack) for seed in range(SEEDS) for arm in RANDOM for attack in TURNS]
    plan = [
        *((first, 0, attack, small) for attack in TURNS),
        *((arm, 0, "learned", small) for arm in others),
        *((arm, 0, "learned", large) for arm in MAIN),
        *((arm, seed, attack, model) for model in SHARES for arm, seed, attack in every),
        *((arm, seed, "learned", small) for arm, seed, _ in more),
        *((arm, seed, attack, model) for model in SHARES for arm, seed, attack in more),
    ]
    yield from (HideTrial.of(*one) for one in dict.fromkeys(plan))


@dataclass(eq=False)
class HideStudy:
    """A folder with a journal and the models; every trial is run at most once."""

    folder: Path
    data: DataSet | None
    training: TrainingSettings = TRAINING

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")

    def run(self, chosen: Sequence[HideTrial], progress: OnProgress) -> None:
        """Run the trials that the journal does not have; refuse one that another version of `learned` wrote to."""
        others = {line["study"].get(LEARNED) for line in self.read()} - {None, LEARNED_VERSION}
        if others:
            raise SettingsError(
                f"{self.journal.path} holds results of version {others.pop()} of `learned`, and this is version "
                f"{LEARNED_VERSION}: choose another folder with --out"
            )
        items = [WorkItem(self.key(one), TrialRun(self, one), name_trial(one)) for one in chosen]
        with Workers(1) as crew:
            run_missing(self.journal, items, crew, progress, "trials", identify)

    def read(self) -> list[dict[str, Any]]:
        """Return the lines of the journal; the first version of the study had one attack and did not name it."""
        return [name_attack(line) for line in self.journal.read()]

    def key(self, trial: HideTrial) -> dict[str, Any]:
        """Return the fields that identify a trial in the journal."""
        assert self.data is not None
        described = {"data": self.data.name, "training": self.training.to_record(), **trial.versions()}
        return {"trial": trial.to_record(), "study": described}

    def run_trial(self, trial: HideTrial, report: Report) -> dict[str, Any]:
        """Train under the arm, let the attacker learn, and attack."""
        assert self.data is not None
        audit = make_audit(self.data, trial, self.training)
        models = self.folder / "models" / trial.model / f"seed-{trial.seed}-{trial.private}"
        audited = audit.run(progress=lambda _, share: report(round(100 * share), 100), models=models)
        others = choose_others(self.data.test, audit.places, trial.seed)
        return {
            "test_accuracy": audited.accuracies[audited.settings.arms[0]],
            "phases": {phase: describe(audited, phase, others) for phase in PHASES},
        }


def name_attack(line: Mapping[str, Any]) -> dict[str, Any]:
    """Add what lines of the first version do not say."""
    if "attack" in line["trial"]:
        return dict(line)
    trial, study = {**line["trial"], "attack": "learned"}, {**line["study"], LEARNED: 1}
    return {**line, "trial": trial, "study": study}


def name_trial(trial: HideTrial) -> str:
    return f"{trial.attack}, {trial.model}, {trial.arm}, seed {trial.seed}"


def make_audit(data: DataSet, trial: HideTrial, training: TrainingSettings) -> Audit:
    """Make the audit of a trial; public images, those of the clients' training, and attacked ones are all different."""
    public, private = share_images(len(data.train), trial)
    clients = replace(data, train=choose_private(data, private, trial.seed, public=public))
    settings = AuditSettings(
        model=trial.model,
        arms=(trial.arm,),
        phases=PHASES,
        attacks=(trial.attack,),
        images=trial.images,
        knows_defence=True,
        training=training,
        group=trial.images,
        stop_early=False,
        seed=trial.seed,
    )
    ours = choose_public(data, public, trial.seed).batch()
    return Audit(settings, data=clients, attacks={trial.attack: trial.make_attack()}, public=ours)


def share_images(images: int, trial: HideTrial) -> tuple[int, int]:
    """Say how many training images are the attacker's and the clients'; a small data set is halved."""
    public = min(trial.public, images // 2)
    return public, min(trial.private, images - public)


def describe(audited: AuditReport, phase: str, others: ImageSet) -> dict[str, Any]:
    """Return what the journal keeps of a phase: rows, and the scores of updates swapped within the class."""
    pairs = [pair for pair in zip(audited.rows, audited.attacked, strict=True) if pair[0].phase == phase]
    records = [row.to_record() for row, _ in pairs]
    return {
        "rows": [{name: record[name] for name in KEPT} for record in records],
        "swapped": swap([one for row, one in pairs if row.status == "ok"], others),
    }


def choose_others(test: ImageSet, attacked: Sequence[int], seed: int) -> ImageSet:
    """Put the test images that are not attacked in a random order."""
    left = torch.ones(len(test), dtype=torch.bool)
    left[list(attacked)] = False
    places = left.nonzero().flatten()
    return test.take(places[torch.randperm(len(places), generator=generator(seed, "swapped"))])


def swap(attacked: Sequence[Attacked], others: ImageSet) -> list[dict[str, Any]]:
    """Score each picture against the next attacked image of the same class, whose update it is not.

    That is the wrong-gradient control: `swapped_gain` is the aligned gain over the mean of the class, and
    `swapped_identified` says that the image is picked out of 20 of its class.
    """
    labels = torch.tensor([one.truth.label for one in attacked])
    found: dict[int, dict[str, Any]] = {}
    for label in torch.unique(labels).tolist():
        places = (labels == label).nonzero().flatten().tolist()
        crowd = others.take((others.labels == label).nonzero().flatten()).batch().pixels()
        if len(places) > 1 and len(crowd) >= CROWD - 1:
            found.update(zip(places, swap_class([attacked[place] for place in places], crowd), strict=True))
    return [found[place] for place in sorted(found)]


def swap_class(attacked: Sequence[Attacked], crowd: Tensor) -> list[dict[str, Any]]:
    """Score the pictures of one class against the next images of it and against the first 19 of the crowd."""
    images = torch.cat([*(one.truth.original for one in attacked), crowd[: CROWD - 1]])
    fill = crowd.mean(0, keepdim=True).expand_as(images)
    targets, every = AlignedTargets(images, fill), torch.arange(len(images))
    floors, count = targets.score(fill, every), len(attacked)
    scored = []
    for at, one in enumerate(attacked):
        places = torch.cat([torch.tensor([(at + 1) % count]), every[count:]])
        gains = targets.score(one.reconstruction.images, places) - floors[places]
        scored.append(compare(gains))
    return scored


def compare(gains: Tensor) -> dict[str, Any]:
    """Compare a picture's gain at the wrong image, which comes first, with those at the others."""
    return {"swapped_gain": round(float(gains[0]), 4), "swapped_identified": bool((gains[0] > gains[1:]).all())}


def identify(line: Mapping[str, Any]) -> object:
    return [line["trial"], line["study"]]


@dataclass(frozen=True, eq=False)
class TrialRun:
    """One trial as a job."""

    study: HideStudy
    trial: HideTrial

    def run(self, report: Report) -> dict[str, Any]:
        return self.study.run_trial(self.trial, report)
