"""What a search is asked to do."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.losses import CrossEntropy, parse_loss
from gradveil.results import read_settings
from gradveil.rng import derive
from gradveil.scores import EXACT, find_quadrature, find_score
from gradveil.search.candidates import count_policies
from gradveil.search.threshold import Threshold
from gradveil.training import BRIEF, PAPER, TrainingSettings
from gradveil.transforms import MAX_STEPS

Strategy = Literal["racing", "random", "evolve"]
Selection = Literal["mean", "mean-variance"]
SAMPLE = "fashion-mnist-sample"
"""The data set of a search that names none."""
SEMI_TRAINED = replace(PAPER, epochs=50, fraction=0.1, test_every=10, threads=1)
"""As in Gao et al.: a tenth of the training images, 50 epochs."""
BRIEFLY_TRAINED = replace(BRIEF, epochs=5, fraction=0.4)
"""For the bundled sample, a tenth of which is too little to learn anything from."""

PUBLISHED = "trapezoid-21"


@dataclass(frozen=True)
class SearchSettings:
    """Everything that decides the outcome of a search.

    `candidates`, `keep`, `length` and `accuracy_threshold` are C_max, n, k and T_acc of Algorithm 1. A threshold that
    is a quantile is taken over the first `accuracy_sample` different candidates, over all of them if that is None.
    `error` bounds the share of the true best ones that racing may lose. `quadrature` is the rule that counts: by
    default that of the papers' code for `random`, one of six gradients for the others, which begin with cheaper ones.
    `training` is how the model that S_pri is computed on is made, `weights` the SHA-256 of its weights if it is there
    already. `loss` is that of these weights; by default the training's, or plain cross-entropy for given weights.
    """

    data: str = SAMPLE
    model: str = "lenet-relu"
    strategy: Strategy = "racing"
    score: str = "s-pri"
    select: Selection = "mean"
    candidates: int = 1500
    keep: int = 10
    length: int = MAX_STEPS
    images: int = 100
    accuracy_threshold: str = "25%"
    accuracy_batches: int = 1
    accuracy_sample: int | None = None
    quadrature: str | None = None
    error: float = 0.02
    training: TrainingSettings | None = BRIEFLY_TRAINED
    weights: str | None = None
    loss: str | None = None
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        derive(self.seed)
        require("strategy", self.strategy, ("racing", "random", "evolve"))
        require("select", self.select, ("mean", "mean-variance"))
        for name in ("candidates", "keep", "images", "accuracy_batches"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name.replace('_', ' ')} is {getattr(self, name)}: give 1 or more")
        if not 1 <= self.length <= MAX_STEPS:
            raise SettingsError(f"length is {self.length}: a policy has from 1 to {MAX_STEPS} transformations")
        if self.keep > self.candidates:
            raise SettingsError(
                f"keep {self.keep} of {self.candidates} candidates: keep fewer, or draw more candidates"
            )
        if self.candidates > count_policies(self.length):
            raise SettingsError(
                f"{self.candidates} candidates: there are {count_policies(self.length):,} policies of up to "
                f"{self.length} transformations; draw fewer"
            )
        if not 0 < self.error < 1:
            raise SettingsError(f"error is {self.error}: give the share that may be lost, between 0 and 1")
        if self.accuracy_sample is not None and self.accuracy_sample < 2:
            raise SettingsError(f"accuracy sample is {self.accuracy_sample}: a quantile needs 2 candidates or more")
        if (self.training is None) == (self.weights is None):
            raise SettingsError("a search needs either a training or weights, and not both")
        if self.training is not None and self.loss not in (None, self.training.loss):
            raise SettingsError(f"loss is {self.loss}: the training has {self.training.loss}; leave it out")
        parse_loss(self.scoring_loss)
        find_score(self.score)
        find_quadrature(self.rule)
        Threshold.parse(self.accuracy_threshold)

    @property
    def sampled(self) -> int:
        """Count the candidates that a quantile is taken over."""
        if self.accuracy_sample is not None:
            return self.accuracy_sample
        return self.candidates if self.strategy == "random" else min(self.candidates, 32)

    @property
    def rule(self) -> str:
        """Return the rule that counts."""
        return self.quadrature or (PUBLISHED if self.strategy == "random" else EXACT)

    @property
    def scoring_loss(self) -> str:
        """Name the loss that scores are computed with."""
        if self.training is not None:
            return self.training.loss
        return self.loss or str(CrossEntropy())

    def to_record(self) -> dict[str, Any]:
        """Return the settings as they stand in JSON."""
        return asdict(self) | {"quadrature": self.rule, "loss": self.scoring_loss}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "SearchSettings":
        """Read settings back from JSON; an unknown key is refused."""
        return read_settings(cls, record, "search", training=TrainingSettings.from_record)


def require(kind: str, name: str, allowed: tuple[str, ...]) -> None:
    if name not in allowed:
        raise UnknownNameError(kind, name, allowed)
