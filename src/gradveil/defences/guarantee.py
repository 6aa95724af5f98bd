"""What DP-SGD promises to each image, whatever the attack: ε at δ."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gradveil.defences.base import Defence
from gradveil.defences.censor import Censor
from gradveil.defences.dpsgd import DPSGD
from gradveil.defences.oasis import Oasis
from gradveil.defences.soteria import Soteria
from gradveil.privacy import sampled_epsilon


@dataclass(frozen=True)
class Guarantee:
    """The promise of `steps` releases, each of images drawn independently with probability `rate`.

    `epsilon` is None if there is none to state: without noise, or if another defence lets an image reach beyond its own
    gradient; `remark` then says so.
    """

    epsilon: float | None
    delta: float
    noise: float
    clip: float
    rate: float
    steps: int
    remark: str = ""

    def __str__(self) -> str:
        size = "no ε" if self.epsilon is None else f"ε = {self.epsilon:.3g} at δ = {self.delta:g}"
        tail = f" ({self.remark})" if self.remark else ""
        steps = "1 step" if self.steps == 1 else f"{self.steps} steps"
        return f"{size}, {steps} at sampling rate {self.rate:.3g}{tail}"

    def to_record(self) -> dict[str, Any]:
        """Return the guarantee as it stands in JSON."""
        return asdict(self)


def find_private(defences: Sequence[Defence]) -> DPSGD | None:
    """Find the defence that makes releases differentially private."""
    return next((defence for defence in defences if isinstance(defence, DPSGD)), None)


def guarantee_of(defences: Sequence[Defence], rate: float, steps: int) -> Guarantee | None:
    """State what a run under these defences promises to each image; None without DP-SGD."""
    private = find_private(defences)
    if private is None:
        return None
    remark = why_none(defences)
    epsilon = None if remark else sampled_epsilon(private.noise, rate, steps, private.delta)
    return Guarantee(epsilon, private.delta, private.noise, private.clip, rate, steps, remark)


def why_none(defences: Sequence[Defence]) -> str:
    """Say why there is no ε to state; empty if there is one."""
    private = find_private(defences)
    if private is None or private.noise == 0:
        return "without noise there is no guarantee"
    for defence in defences:
        if defence.companions:
            return f"{defence} lets an image into the gradients of others, which the accountant does not cover"
        if isinstance(defence, Oasis):
            return f"{defence} puts an image into several gradients, which the accountant does not cover"
        if isinstance(defence, Soteria | Censor):
            return f"{defence} looks at the images again after the noise"
    return ""
