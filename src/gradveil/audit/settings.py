"""What an audit is asked to do."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from gradveil.attacks import find_attack
from gradveil.defences import parse_arm
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.rng import derive
from gradveil.training import BRIEF, TrainingSettings, parse_phase

Labels = Literal["known", "hidden"]
DEFAULT_ARMS = ("none", "crop-flip", "policy:3-1-7", "policy:3-1-7+43-18-18")


@dataclass(frozen=True)
class AuditSettings:
    """Everything that decides the figures of an audit.

    `images` images of the test split are attacked, each from the gradient it alone gives. `labels` says whether the
    attacker is told their labels, `knows_defence` whether it is told the arm's defences (never their draws). `group`
    images are attacked as one job. The chance floor is made of `floor_images` training images, and an attack that
    starts from public images gets the first 500 of them. `steps`, if given, replaces every attack's own number.
    With several `participants` the attacker sees the mean of so many clients' updates only, one attacked image each.
    """

    data: str = "fashion-mnist-sample"
    model: str = "lenet-relu"
    arms: tuple[str, ...] = DEFAULT_ARMS
    phases: tuple[str, ...] = ("init", "final")
    attacks: tuple[str, ...] = ("fast",)
    images: int = 8
    labels: Labels = "known"
    knows_defence: bool = False
    steps: int | None = None
    training: TrainingSettings = field(default=BRIEF)
    floor_images: int = 2000
    group: int = 8
    participants: int = 1
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("arms", "phases", "attacks"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise SettingsError(f"{name} are {', '.join(values) or 'empty'}: name at least one, each once")
        derive(self.seed)
        for arm in self.arms:
            parse_arm(arm)
        for phase in self.phases:
            parse_phase(phase)
        for attack in self.attacks:
            find_attack(attack)
        for name in ("images", "floor_images", "group", "participants", "threads"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name.replace('_', ' ')} is {getattr(self, name)}: give 1 or more")
        if self.images % self.participants:
            raise SettingsError(
                f"{self.images} images for {self.participants} participants: each brings one image to an aggregate, so "
                "give a multiple of the participants"
            )
        if self.steps is not None and self.steps < 1:
            raise SettingsError(f"steps is {self.steps}: give 1 or more")
        if self.labels not in ("known", "hidden"):
            raise SettingsError(f"labels are '{self.labels}': choose known or hidden")

    def to_record(self) -> dict[str, Any]:
        """Give the settings as they stand in JSON."""
        return {**asdict(self), "arms": list(self.arms), "phases": list(self.phases), "attacks": list(self.attacks)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "AuditSettings":
        """Read settings back from JSON; an unknown key is refused."""
        allowed = {entry.name for entry in fields(cls)}
        for key in record:
            if key not in allowed:
                raise UnknownNameError("audit setting", key, allowed)
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in record.items()
        }
        if "training" in values:
            values["training"] = TrainingSettings.from_record(values["training"])
        return cls(**values)
