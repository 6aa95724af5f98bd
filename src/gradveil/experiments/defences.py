"""What every defence costs and saves: which trials are run, and how one is run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gradveil.audit import AuditSettings, run_audit
from gradveil.data import DataSet, choose_attacked
from gradveil.errors import DivergenceError
from gradveil.experiments.versions import PRESENT, versions_of
from gradveil.journal import Journal
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import FAST, TrainingSettings
from gradveil.workers import Crew, Report, Shared, Workers

GREY, COLOUR = "sample", "colour"
CONTROLS = ("none", "crop-flip")
STRENGTHS: dict[str, tuple[str, str, str]] = {
    "policy": ("43-18-18", "3-1-7+43-18-18", "3-1-7"),
    "gaussian": ("1e-3", "1e-2", "1e-1"),
    "laplacian": ("1e-3", "1e-2", "1e-1"),
    "prune": ("70", "95", "99"),
    "topk": ("30", "5", "1"),
    "clip": ("1", "0.1", "0.01"),
    "quantise": ("8", "4", "2"),
    "mixup": ("0.2", "1", "8"),
    "instahide": ("2", "4", "6"),
    "dpsgd": ("noise=0.3:clip=1", "noise=1.1:clip=1", "noise=4:clip=1"),
    "soteria": ("20", "40", "80"),
    "precode": ("width=256", "width=64", "width=16"),
}
"""From weak to strong; CIFAR-100 gets the one in the middle."""
SEEDS = 3
RANDOM_POLICIES = 10
COLOUR_STEPS = 200


@dataclass(frozen=True)
class DefenceTrial:
    """One arm, trained and attacked with one seed; `steps` are those of each member of the attack, if not its own."""

    part: str
    data: str
    model: str
    arm: str
    seed: int
    images: int
    fraction: float = 1.0
    steps: int | None = None

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def arms(strengths: Sequence[int]) -> Iterator[str]:
    """Name the arms that are compared, each defence at the strengths with these places."""
    yield from CONTROLS
    yield "sign"
    for name, levels in STRENGTHS.items():
        yield from (f"{name}:{levels[place]}" for place in strengths)


def bundled() -> Iterator[DefenceTrial]:
    """Three strengths and three seeds with four images each; the random policies with one seed and two images each."""
    for seed in range(SEEDS):
        for arm in arms((0, 1, 2)):
            yield DefenceTrial("bundled", GREY, "lenet-relu", arm, seed, 4)
    for number in range(RANDOM_POLICIES):
        yield DefenceTrial("bundled", GREY, "lenet-relu", f"random-policy:{number}", 0, 2)


def colour() -> Iterator[DefenceTrial]:
    """One strength, one seed, a tenth of the training images, and an attack that a processor can bear."""
    for arm in arms((1,)):
        yield DefenceTrial("colour", COLOUR, "resnet20-1", arm, 0, 12, 0.1, COLOUR_STEPS)
    for number in range(RANDOM_POLICIES):
        yield DefenceTrial("colour", COLOUR, "resnet20-1", f"random-policy:{number}", 0, 2, 0.1, COLOUR_STEPS)


PARTS: dict[str, Callable[[], Iterator[DefenceTrial]]] = {"bundled": bundled, "colour": colour}


@dataclass(eq=False)
class DefenceStudy:
    """A folder with a journal and the models; every trial is run at most once with the same attack and training.

    Another attack finds the models there and does not train them again.
    """

    folder: Path
    data: dict[str, DataSet]
    attack: str = "standard"
    steps: int | None = None
    training: TrainingSettings = FAST
    floor_images: int = 2000
    workers: int | Crew = 1

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")

    def run(self, trials: Sequence[DefenceTrial], progress: OnProgress) -> None:
        """Run the trials that the journal does not have and whose data are at hand, several at a time."""
        with Workers(self.workers) if isinstance(self.workers, int) else nullcontext(self.workers) as crew:
            for name, data in self.data.items():
                shared = crew.share(data)
                items = [
                    WorkItem(
                        {"trial": trial.to_record(), "study": self.describe()},
                        TrialJob(trial.arm, self.settings_of(trial), shared, self.models_of(trial)),
                        f"{trial.arm}, seed {trial.seed}",
                        {DivergenceError: "diverged"},
                    )
                    for trial in trials
                    if trial.data == name
                ]
                run_missing(self.journal, items, crew, progress, "trials", identify)

    def entries(self) -> list[dict[str, Any]]:
        """Read the trials that were run as this study would run them."""
        return [entry for entry in self.journal.read() if described(entry) == self.describe()]

    def entries_of_any_version(self) -> list[dict[str, Any]]:
        """Read the trials that were run with this attack and training, by whatever version."""
        wanted = {**self.describe(), **dict.fromkeys(PRESENT)}
        return [entry for entry in self.journal.read() if {**described(entry), **dict.fromkeys(PRESENT)} == wanted]

    def describe(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "steps": self.steps,
            "training": self.training.to_record(),
            **PRESENT,
        }

    def models_of(self, trial: DefenceTrial) -> Path:
        """Say where the models of a trial's seed are kept."""
        return self.folder / "models" / f"{trial.data}_{trial.model}_{self.training.epochs}-epochs_seed-{trial.seed}"

    def settings_of(self, trial: DefenceTrial) -> AuditSettings:
        """Say how one arm is trained and attacked; the attacker is told the defence, though never what was drawn."""
        return AuditSettings(
            data=self.data[trial.data].name,
            model=trial.model,
            arms=(trial.arm,),
            attacks=(self.attack,),
            images=trial.images,
            places=choose_attacked(self.data[trial.data], trial.images, trial.seed),
            knows_defence=True,
            steps=trial.steps if self.steps is None else self.steps,
            training=replace(self.training, fraction=trial.fraction),
            floor_images=self.floor_images,
            group=trial.images,
            seed=trial.seed,
        )


def described(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Read how a trial was run; what earlier versions wrote is brought up to date."""
    study = entry["study"]
    training = TrainingSettings.from_record(study["training"]).to_record()
    return {**study, "training": training, **versions_of(entry)}


def identify(line: Mapping[str, Any]) -> object:
    return [line["trial"], described(line)]


@dataclass(frozen=True, eq=False)
class TrialJob:
    """Train and attack one arm, wherever it runs."""

    arm: str
    settings: AuditSettings
    data: Shared[DataSet]
    models: Path

    def run(self, report: Report) -> dict[str, Any]:
        """Return what the journal holds of a trial."""
        audited = run_audit(
            self.settings,
            self.data.get(),
            progress=lambda _, share: report(round(100 * share), 100),
            models=self.models,
        )
        return {
            "test_accuracy": audited.accuracies[self.arm],
            "training_seconds": audited.training_seconds[self.arm],
            "notes": audited.arms[self.arm].to_record(),
            "rows": [row.to_record() for row in audited.rows],
        }
