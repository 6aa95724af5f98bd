"""What an audit is asked to do."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from gradveil.audit.rule import Kind, Rule
from gradveil.errors import SettingsError
from gradveil.losses import parse_loss
from gradveil.results import read_settings
from gradveil.rng import derive
from gradveil.training import BRIEF, TrainingSettings, parse_phase
from gradveil.types import ONE_GRADIENT, LocalTraining

Labels = Literal["known", "hidden"]
DEFAULT_ARMS = ("none", "crop-flip", "policy:3-1-7", "policy:3-1-7+43-18-18")
"""The arms of an audit that names none."""


@dataclass(frozen=True)
class AuditSettings:
    """Everything that decides the figures of an audit.

    Up to `images` images of the test split are attacked: a seeded choice, or those at `places` if any are given. A
    client has `images_per_client` of them, works on them as `local` says and releases one update; its loss is that of
    `training`. With several `participants` the attacker sees the mean of so many clients' updates only. `labels` says
    whether the attacker is told the labels, `knows_defence` whether it is told the arm's defences (never their draws).
    About `group` images are attacked as one job; with `stop_early` no more than `first_look` images are attacked of an
    arm, phase and attack if they settle the question. The chance floor is made of `floor_images` training images, a
    number that grows with the classes if None, and the attacker gets the first 500 of them as public ones (more if the
    attack asks for more, see `Audit`). `steps`, if given, replaces every attack's own number. A `budget` is in seconds
    for one image; what it comes to on this machine is measured once and stands in `gradients`, which then replaces the
    attacks' own numbers. `rule` decides what the figures are called. `preset` names the preset that the values come
    from. With `control` the arm `none` is there only to show that the attack works: no gate counts it. `canaries`
    readable cards are attacked besides the images; they do not count in the verdict. `checkpoint` is the file that the
    weights of the phase `given` come from. `code` holds the SHA-256 of the source of attacks and defences of a person's
    own, by their names.

    Data, model, arms and attacks stand here by name; `Audit` looks the names up.
    """

    data: str = "fashion-mnist-sample"
    model: str = "lenet-relu"
    arms: tuple[str, ...] = DEFAULT_ARMS
    phases: tuple[str, ...] = ("init", "final")
    attacks: tuple[str, ...] = ("fast",)
    images: int = 8
    places: tuple[int, ...] = ()
    images_per_client: int = 1
    local: LocalTraining = ONE_GRADIENT
    labels: Labels = "known"
    knows_defence: bool = True
    steps: int | None = None
    budget: float | None = None
    gradients: int | None = None
    training: TrainingSettings = field(default=BRIEF)
    floor_images: int | None = None
    group: int = 8
    stop_early: bool = True
    first_look: int = 8
    rule: Rule = field(default_factory=Rule)
    preset: str | None = None
    control: bool = False
    canaries: int = 0
    checkpoint: str | None = None
    participants: int = 1
    threads: int = 1
    seed: int = 0
    code: dict[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("arms", "phases", "attacks"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise SettingsError(f"{name} are {', '.join(values) or 'empty'}: name at least one, each once")
        derive(self.seed)
        object.__setattr__(self, "local", replace(self.local, loss=parse_loss(self.training.loss)))
        for phase in self.phases:
            parse_phase(phase)
        for name in ("images", "images_per_client", "floor_images", "group", "participants", "threads", "first_look"):
            if (getattr(self, name) or 1) < 1 or getattr(self, name) == 0:
                raise SettingsError(f"{name.replace('_', ' ')} is {getattr(self, name)}: give 1 or more")
        if self.canaries < 0:
            raise SettingsError(f"{self.canaries} canaries: give 0 or more")
        if self.places and (len(set(self.places)) < len(self.places) or len(self.places) != self.images):
            raise SettingsError(f"{self.images} images at the places {self.places}: name each place once, and all")
        if self.images % self.images_per_round:
            raise SettingsError(
                f"{self.images} images for {self.participants} participants with {self.images_per_client} images each: "
                f"give a multiple of {self.images_per_round} images"
            )
        size = self.local.size_of(self.images_per_client)
        if size > self.images_per_client:
            raise SettingsError(f"local batches of {size} from {self.images_per_client} images a client: give smaller")
        if self.steps is not None and self.steps < 1:
            raise SettingsError(f"steps is {self.steps}: give 1 or more")
        if self.budget is not None and not 0 < self.budget < math.inf:
            raise SettingsError(f"a budget of {self.budget:g} seconds for one image: give more than 0")
        if self.gradients is not None and self.gradients < 1:
            raise SettingsError(f"gradients is {self.gradients}: give 1 or more")
        if self.steps is not None and (self.budget is not None or self.gradients is not None):
            raise SettingsError("steps and a budget both say how long to attack: give one of them")
        if self.labels not in ("known", "hidden"):
            raise SettingsError(f"labels are '{self.labels}': choose known or hidden")

    @property
    def kind(self) -> Kind:
        """Tell a diagnostic, which grants the attacker the most, from a client as it is deployed."""
        return "deployment" if self.local.mode == "train" and self.labels == "hidden" else "diagnostic"

    @property
    def images_per_round(self) -> int:
        """The number of images behind one released update."""
        return self.images_per_client * self.participants

    @property
    def released(self) -> str:
        """Say in words what the attacker sees of one round."""
        update = self.local.words(self.images_per_client)
        return update if self.participants == 1 else f"the mean over {self.participants} clients of {update}"

    def to_record(self) -> dict[str, Any]:
        """Return the settings as they stand in JSON."""
        lists = {name: list(getattr(self, name)) for name in ("arms", "phases", "attacks", "places")}
        record = {**asdict(self), **lists, "local": self.local.to_record()}
        # Most audits use no code of a person's own; their records stay as they were.
        return record if self.code else {name: value for name, value in record.items() if name != "code"}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "AuditSettings":
        """Read settings back from JSON; an unknown key is refused."""
        return read_settings(
            cls,
            record,
            "audit",
            training=TrainingSettings.from_record,
            local=LocalTraining.from_record,
            rule=Rule.from_record,
        )
