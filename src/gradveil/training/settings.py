"""How to train, as values: the settings and the two recipes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gradveil.errors import SettingsError
from gradveil.losses import CrossEntropy, parse_loss
from gradveil.results import read_settings
from gradveil.types import LocalTraining

Schedule = Literal["steps", "one-cycle"]
DROPS = (3 / 8, 5 / 8, 7 / 8)


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that decides the weights apart from the model, the data, the defences and the seed.

    The learning rate rises linearly over the first `warm_up` of the steps. Then it falls: tenfold at 3/8, 5/8 and 7/8
    of the way by the schedule "steps", linearly to zero by "one-cycle". With `muon` above 0, kernels and hidden weight
    matrices learn by Muon, at so many times the learning rate; all else learns by SGD. `loss` names the loss; the audit
    and the scores take it from here. `fraction` is the share of the training images that are used. `threads` stands
    here because the last bits of a sum depend on it. `test_every` is in epochs; the last epoch is always tested.
    """

    recipe: Literal["paper", "fast", "brief"] = "paper"
    epochs: int = 60
    batch_size: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    muon: float = 0.0
    loss: str = "cross-entropy"
    schedule: Schedule = "steps"
    warm_up: float = 0.02
    channels_last: bool = True
    fraction: float = 1.0
    test_every: int = 1
    threads: int = 2

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "test_every"):
            require(name, getattr(self, name), getattr(self, name) >= 1, "1 or more")
        require("threads", self.threads, 1 <= self.threads <= 1024, "from 1 to 1024")
        require("learning_rate", self.learning_rate, 0 < self.learning_rate < float("inf"), "above 0")
        for name in ("weight_decay", "muon"):
            require(name, getattr(self, name), 0 <= getattr(self, name) < float("inf"), "0 or more")
        parse_loss(self.loss)
        for name in ("momentum", "warm_up"):
            require(name, getattr(self, name), 0 <= getattr(self, name) < 1, "from 0 to below 1")
        require("fraction", self.fraction, 0 < self.fraction <= 1, "above 0 and at most 1")
        require("recipe", self.recipe, self.recipe in ("paper", "fast", "brief"), "paper, fast or brief")
        require("schedule", self.schedule, self.schedule in ("steps", "one-cycle"), "steps or one-cycle")

    def to_record(self) -> dict[str, Any]:
        """Return the settings as they stand in JSON."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "TrainingSettings":
        """Read settings back from JSON; an unknown key is refused."""
        return read_settings(cls, upgraded(record), "training")

    def local(self) -> LocalTraining:
        """Say how the one client of a centralised training works: a gradient of the batch at every step."""
        return LocalTraining(
            batch_size=self.batch_size,
            optimiser="muon" if self.muon else "sgd",
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            nesterov=self.momentum > 0,
            weight_decay=self.weight_decay,
            muon_scale=self.muon or 1.0,
            loss=parse_loss(self.loss),
            mode="train",
        )

    def steps_per_epoch(self, images: int) -> int:
        """Count the steps of an epoch over a training split of `images`.

        Differs from the papers' code: an incomplete last batch is left out, so that every step weighs the same.
        """
        return max(1, count_fraction(images, self.fraction) // self.batch_size)

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of step `step` (from 0) out of `steps`."""
        rise = self.warm_up * steps
        if step + 1 <= rise:
            return self.learning_rate * (step + 1) / rise
        if self.schedule == "steps":
            return self.learning_rate * 0.1 ** sum(step >= drop * steps for drop in DROPS)
        return self.learning_rate * (steps - step) / (steps - rise)


def upgraded(record: Mapping[str, Any]) -> dict[str, Any]:
    """Bring settings that an earlier version wrote up to date: the loss was a label smoothing."""
    values = dict(record)
    if "label_smoothing" in values:
        values["loss"] = str(CrossEntropy(values.pop("label_smoothing")))
    return values


def count_fraction(images: int, fraction: float) -> int:
    return max(1, round(fraction * images))


def require(name: str, value: object, holds: bool, allowed: str) -> None:
    if not holds:
        raise SettingsError(f"{name.replace('_', ' ')} is {value}: it must be {allowed}")


# 200 epochs in Gao et al.; its replication found that 60 suffice. Differs from both: a short rise of the learning rate,
# without which the ConvNet's last units die within ten steps (they survive if the loss is halved, as in their code).
PAPER = TrainingSettings()
"""The papers' recipe."""
FAST = TrainingSettings(
    recipe="fast",
    epochs=12,
    batch_size=64,
    muon=0.2,
    loss="cross-entropy:smoothing=0.1",
    schedule="one-cycle",
    warm_up=0.1,
)
"""A recipe that reaches its accuracy in a few epochs."""
BRIEF = TrainingSettings(
    recipe="brief",
    epochs=3,
    learning_rate=0.03,
    loss="cross-entropy:smoothing=0.1",
    schedule="one-cycle",
    warm_up=0.25,
    threads=1,
)
"""A few gentle epochs, for audits and searches."""
RECIPES: dict[str, TrainingSettings] = {"paper": PAPER, "fast": FAST}
"""The recipes by the name that `--recipe` takes."""
