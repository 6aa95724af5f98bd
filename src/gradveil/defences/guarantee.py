"""What differential privacy promises, whatever the attack: ε at δ, and the most a reconstruction can succeed."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from gradveil.defences.base import Defence
from gradveil.defences.dpsgd import DPSGD
from gradveil.defences.soteria import Soteria
from gradveil.errors import import_extra

CHANCE = 0.01


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
        """Give the guarantee as it stands in JSON."""
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
    epsilon = None if remark else spent(private.noise, rate, steps, private.delta)
    return Guarantee(epsilon, private.delta, private.noise, private.clip, rate, steps, remark)


def why_none(defences: Sequence[Defence]) -> str:
    """Say why there is no ε to state; empty if there is one."""
    private = find_private(defences)
    if private is None or private.noise == 0:
        return "without noise there is no guarantee"
    for defence in defences:
        if defence.companions:
            return f"{defence} lets an image into the gradients of others, which the accountant does not cover"
        if isinstance(defence, Soteria):
            return f"{defence} looks at the images again after the noise"
    return ""


def spent(noise: float, rate: float, steps: int, delta: float) -> float:
    """Ask Opacus's RDP accountant for ε.

    It counts Poisson sampling, which is what training under DP-SGD does here, and two data sets as neighbours if one
    has one image more.
    """
    accountant = import_extra("opacus.accountants", "federated").RDPAccountant()
    if steps:
        accountant.history.append((noise, rate, steps))
    with warnings.catch_warnings():
        # That a higher order might give a smaller ε does not make this one wrong.
        warnings.simplefilter("ignore")
        return float(accountant.get_epsilon(delta))


def success_bound(noise: float, chance: float = CHANCE) -> float:
    """Bound the probability that any attacker rebuilds the image of one release of DP-SGD, at sampling rate 1.

    `chance` is the probability of the same success for someone who did not see the release: the bound holds for every
    measure of success, every prior and every attack. It is Φ(Φ⁻¹(chance) + 1/noise) (Hayes et al., 2023; Kaissis et
    al., 2023).

    >>> round(success_bound(1.0), 3)
    0.092
    """
    if noise == 0:
        return 1.0
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(chance) + 1 / noise) if 0 < chance < 1 else math.ceil(chance)
