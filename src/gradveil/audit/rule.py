"""The rule of the verdict: what counts as a leak, and how often the verdict may be wrong."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gradveil.errors import SettingsError
from gradveil.results import read_settings

Outcome = Literal["leaks", "some", "none-found", "undecided", "untrusted"]
"""How an arm, phase and attack end; `WORDS` has them in plain words."""
Kind = Literal["diagnostic", "deployment"]
"""A diagnostic grants the attacker more than a real training does."""
WORDS: dict[Outcome, str] = {
    "leaks": "leaks",
    "some": "some images leak",
    "none-found": "no leak found at this strength",
    "undecided": "undecided",
    "untrusted": "not trustworthy",
}
"""What an outcome is called, worst first."""


@dataclass(frozen=True)
class Rule:
    """Definition 2 of Gao et al. (2021), with the chance level taken off.

    A policy is (ε, δ, γ)-privacy-aware if the attack reaches ε on a share of less than δ of the images, and it costs
    less than γ of the accuracy. `epsilon` is in dB over chance. `error` is the probability of a false "leaks", and
    again of a false "some", in a whole audit; and of a false "no leak found" of one arm, phase and attack.
    """

    epsilon: float = 1.0
    delta: float = 0.1
    gamma: float = 0.05
    error: float = 0.05

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and 0 < self.delta < 1 and 0 < self.gamma < 1 and 0 < self.error < 0.5):
            raise SettingsError(
                f"ε {self.epsilon}, δ {self.delta}, γ {self.gamma}, error {self.error}: ε is in dB and above 0, δ and "
                "γ are shares between 0 and 1, the error lies below 0.5"
            )

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Rule":
        """Read a rule back from JSON; an unknown key is refused."""
        return read_settings(cls, record, "rule")
