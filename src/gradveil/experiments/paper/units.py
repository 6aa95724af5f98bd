"""What is run, as values: train a model, attack some images, score a policy, search.

A unit is known by the hash of what made it, so that what two experiments share is run once.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, final

from gradveil.attacks import LEARNED_VERSION
from gradveil.audit import AUDIT_VERSION
from gradveil.data import IMAGE_CHOICE
from gradveil.errors import SettingsError
from gradveil.experiments.paper.quirks import CIFAR10_STATISTICS, HALVED_LOSS
from gradveil.experiments.versions import CHOICE, KEY, STANDARD
from gradveil.results import canonical
from gradveil.training import TrainingSettings

Phase = Literal["init", "final"]
Choice = Literal["balanced", "first"]
ScoreName = Literal["s-pri", "s-acc"]
DIGITS = 16
LEARNER, LEARNED = "learned", "learned_version"
STUDIED_STANDARD = 6
"""The version of `standard` that the study was begun with, and goes on with."""


class Recorded:
    """A unit that can be written down; `kind` tells it from others with the same fields."""

    kind: ClassVar[str]

    def to_record(self) -> dict[str, Any]:
        """Return the unit as it stands in the journal."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    @property
    def key(self) -> str:
        """The hash of all that decides the result, apart from versions of the code."""
        return hashlib.sha256(canonical(self.to_record())).hexdigest()[:DIGITS]

    def versions(self) -> dict[str, int | None]:
        """Return the versions of the code that the result depends on."""
        return {KEY: AUDIT_VERSION, CHOICE: IMAGE_CHOICE, STANDARD: None}


@final
@dataclass(frozen=True)
class TrainUnit(Recorded):
    """A model to train; `quirks` are those of the published code that change the training or the model."""

    kind: ClassVar[str] = "train"
    data: str
    model: str
    arm: str
    training: TrainingSettings
    seed: int = 0
    quirks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_quirks(self.quirks, (CIFAR10_STATISTICS,))

    def name(self) -> str:
        return f"train {self.model} on {self.data}, {self.arm}, seed {self.seed}"


@final
@dataclass(frozen=True)
class AttackUnit(Recorded):
    """Some images to attack: what a client of `arm` releases from the weights of `model` at `phase`.

    Attacked are `count` images from place `first` on, of a `balanced` choice or of the `first` images of the test
    split. `steps` and `restarts` are the attack's own unless given. A client holds `per_client` images, and takes
    `epochs` local epochs if that is given. An attacker who is `told` knows the arm, never its draws.
    """

    kind: ClassVar[str] = "attack"
    model: TrainUnit
    arm: str
    attack: str
    first: int
    count: int
    phase: Phase = "final"
    steps: int | None = None
    restarts: int | None = None
    choice: Choice = "balanced"
    per_client: int = 1
    epochs: int | None = None
    told: bool = False
    floor_images: int | None = None
    quirks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_quirks(self.quirks, (HALVED_LOSS,))
        if self.count < 1 or self.first < 0 or self.count % self.per_client:
            raise SettingsError(
                f"{self.count} images from place {self.first} on, {self.per_client} for each client: give whole clients"
            )

    def versions(self) -> dict[str, int | None]:
        standard = STUDIED_STANDARD if self.attack == "standard" else None
        learned = {LEARNED: LEARNED_VERSION} if self.attack == LEARNER else {}
        return {**super().versions(), STANDARD: standard, **learned}

    def name(self) -> str:
        return f"{self.attack} on {self.model.model}, {self.model.data}, {self.arm}, images from {self.first}"


@final
@dataclass(frozen=True)
class ScoreUnit(Recorded):
    """A policy to score; with `curves` GradSim along the way is kept, image by image, else the score alone."""

    kind: ClassVar[str] = "score"
    model: TrainUnit
    policy: str
    images: int
    score: ScoreName = "s-pri"
    phase: Phase = "final"
    form: str = "layerwise"
    quadrature: str = "trapezoid-21"
    start: str = "uniform"
    curves: bool = False

    def name(self) -> str:
        return f"{self.score} of {self.policy} on {self.model.model}, {self.model.data}"


@final
@dataclass(frozen=True)
class SearchUnit(Recorded):
    """A search for policies on a semi-trained model."""

    kind: ClassVar[str] = "search"
    model: TrainUnit
    candidates: int
    images: int
    keep: int

    def name(self) -> str:
        return f"search on {self.model.model}, {self.model.data}"


Unit = TrainUnit | AttackUnit | ScoreUnit | SearchUnit


def recipe_of(attack: str) -> str:
    """Name the recipe of an attack: what the journal calls `standard` is the version that the study was begun with."""
    return f"standard-{STUDIED_STANDARD}" if attack == "standard" else attack


def check_quirks(quirks: Sequence[str], allowed: Sequence[str]) -> None:
    """Refuse quirks that do not change a unit of this kind."""
    wrong = [quirk for quirk in quirks if quirk not in allowed]
    if wrong:
        raise SettingsError(f"quirk '{wrong[0]}' changes nothing here: choose from {', '.join(allowed)}")


def model_of(unit: Unit) -> TrainUnit | None:
    """Return the model that has to be trained before a unit can run."""
    if isinstance(unit, TrainUnit):
        return None
    trained = isinstance(unit, SearchUnit) or unit.phase == "final"
    return unit.model if trained else None


def data_of(unit: Unit) -> str:
    return unit.data if isinstance(unit, TrainUnit) else unit.model.data


def with_models(units: Sequence[Unit]) -> list[Unit]:
    """List every unit once, the models that they need before all others."""
    models = [unit if isinstance(unit, TrainUnit) else model_of(unit) for unit in units]
    others = [unit for unit in units if not isinstance(unit, TrainUnit)]
    return list(dict.fromkeys([*(model for model in models if model is not None), *others]))


def shorten(value: Any) -> Any:
    """Round a number to what the journal keeps of it."""
    return round(value, 5) if isinstance(value, float) else value
