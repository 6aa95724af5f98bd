"""What a collaborative training is asked to do."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from gradveil.data import DataSet, parse_partition
from gradveil.defences import Defence, parse_arm
from gradveil.errors import SettingsError
from gradveil.losses import parse_loss
from gradveil.results import read_settings
from gradveil.rng import derive
from gradveil.training import FAST, TrainingSettings
from gradveil.types import LocalTraining

Algorithm = Literal["fedsgd", "fedavg"]
"""Clients send one gradient, or the change of local training."""
TOGETHER = 64
"""Images of all clients together in one round of FedSGD, unless a client's number is given."""
# Chosen by `gradveil reproduce federated --part choose`: see docs/federated.md.
FEDAVG = LocalTraining(
    steps=5, batch_size=8, optimiser="muon", learning_rate=0.05, momentum=0.9, shuffle=True, mode="train"
)
"""The local training of FedAvg unless another is given."""
FEDAVG_MOMENTUM = 0.9


@dataclass(frozen=True)
class FederatedSettings:
    """Everything that decides the weights of a collaborative training.

    With `fedsgd` a client releases one gradient of `batch_size` of its images a round, and the server takes the steps
    of `training` along their mean; one `epoch` of it is a pass over all images. With `fedavg` a client works as
    `local` says and the server adds the mean of the weight changes; the local rate falls linearly to zero over the
    rounds. With `server_momentum` the server adds a running sum of the means instead. Means are weighted by the
    clients' numbers of images. A round with fewer than `least_valid` valid replies ends the run; None asks for more
    than half of the clients. `timeout` is in seconds for each round. `own` holds defences of a person's own by the
    names that the arm gives them, and `code` the SHA-256 of their source; records hold the latter only.
    """

    data: str = "fashion-mnist-sample"
    model: str = "lenet-relu"
    clients: int = 10
    algorithm: Algorithm = "fedsgd"
    arm: str = "crop-flip"
    partition: str = "iid"
    rounds: int | None = None
    batch_size: int | None = None
    local: LocalTraining = FEDAVG
    server_momentum: float = FEDAVG_MOMENTUM
    training: TrainingSettings = field(default=replace(FAST, threads=1))
    least_valid: int | None = None
    largest_norm: float = 1e4
    timeout: float = 600.0
    seed: int = 0
    own: Mapping[str, Defence] = field(default_factory=dict, repr=False, hash=False)
    code: dict[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        derive(self.seed)
        if not all(isinstance(defence, Defence) for defence in self.own.values()):
            raise SettingsError("own holds something that is no defence: give gradveil.Defence objects by their names")
        parse_arm(self.arm, self.own)
        parse_partition(self.partition)
        object.__setattr__(self, "local", replace(self.local, loss=parse_loss(self.training.loss)))
        if self.algorithm not in ("fedsgd", "fedavg"):
            raise SettingsError(f"algorithm '{self.algorithm}': choose fedsgd or fedavg")
        for name in ("clients", "rounds", "batch_size", "least_valid"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"{name.replace('_', ' ')} is {value}: give 1 or more")
        if self.least_valid is not None and self.least_valid > self.clients:
            raise SettingsError(f"{self.least_valid} valid replies of {self.clients} clients: ask for fewer")
        if not (self.timeout > 0 and self.largest_norm > 0):
            raise SettingsError(f"timeout {self.timeout}, largest norm {self.largest_norm}: both must be above 0")
        if not 0 <= self.server_momentum < 1:
            raise SettingsError(f"server momentum is {self.server_momentum}: it must be from 0 to below 1")
        if self.algorithm == "fedavg" and not self.local.takes_steps:
            raise SettingsError("fedavg needs local steps or epochs: give one of them")

    @property
    def needed(self) -> int:
        """The least number of valid replies of a round."""
        return self.clients // 2 + 1 if self.least_valid is None else self.least_valid

    @property
    def client_batch(self) -> int:
        """The number of images behind a client's gradient in one round of FedSGD."""
        return max(1, TOGETHER // self.clients) if self.batch_size is None else self.batch_size

    @property
    def works(self) -> LocalTraining:
        """How a client works in a round."""
        if self.algorithm == "fedavg":
            return self.local
        return LocalTraining(batch_size=self.client_batch, loss=self.local.loss, mode=self.local.mode)

    def count_rounds(self, data: DataSet) -> int:
        """Count the rounds: those asked for, or as many as the recipe's passes over all images take."""
        if self.rounds is not None:
            return self.rounds
        if self.algorithm == "fedavg" and self.local.epochs is not None:
            return max(1, self.training.epochs // self.local.epochs)
        share = max(1, len(data.train) // self.clients)
        used = self.client_batch if self.algorithm == "fedsgd" else (self.local.steps or 1) * self.local.size_of(share)
        return self.training.epochs * max(1, share // used)

    def to_record(self) -> dict[str, Any]:
        """Return the settings as they stand in JSON."""
        record = {**asdict(self), "local": self.local.to_record(), "training": self.training.to_record()}
        left_out = {"own"} if self.code else {"own", "code"}
        return {name: value for name, value in record.items() if name not in left_out}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "FederatedSettings":
        """Read settings back from JSON; an unknown key is refused."""
        return read_settings(
            cls, record, "federated", local=LocalTraining.from_record, training=TrainingSettings.from_record
        )
