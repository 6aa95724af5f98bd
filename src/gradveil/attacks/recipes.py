"""Named settings."""

from gradveil.attacks.base import Attack
from gradveil.attacks.matching import GradientMatching
from gradveil.errors import UnknownNameError

ATTACKS: dict[str, Attack] = {
    # Inverting Gradients (Geiping et al., 2020) with the settings of Gao et al. (2021).
    "adam-cosine": GradientMatching(),
    # The same attack with fewer steps, a smooth schedule and a stronger prior.
    "quick": GradientMatching(steps=600, schedule="cosine", total_variation=3e-3),
}


def find_attack(name: str) -> Attack:
    """Find the attack called `name`."""
    if name not in ATTACKS:
        raise UnknownNameError("attack", name, ATTACKS)
    return ATTACKS[name]
