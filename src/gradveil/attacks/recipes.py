"""Named settings."""

from gradveil.attacks.base import Attack
from gradveil.attacks.matching import GradientMatching
from gradveil.errors import UnknownNameError

ATTACKS: dict[str, Attack] = {
    # The six of Gao et al. (2021), with their settings; adam-cosine is Inverting Gradients (Geiping et al., 2020).
    "adam-cosine": GradientMatching(),
    "adam-l1": GradientMatching(distance="l1"),
    "adam-l2": GradientMatching(distance="l2"),
    "sgd-cosine": GradientMatching(optimiser="sgd", learning_rate=0.01),
    "lbfgs-l2": GradientMatching(
        distance="l2",
        optimiser="lbfgs",
        learning_rate=1e-4,
        schedule="constant",
        steps=50,
        restarts=2,
        signed=False,
        box=False,
        total_variation=1e-3,
    ),
    "lbfgs-cosine": GradientMatching(
        optimiser="lbfgs", learning_rate=1e-4, schedule="constant", steps=300, restarts=16, signed=False
    ),
    # Deep Leakage from Gradients as Zhu et al. (2019) wrote it: labels are searched for, nothing is known of images.
    "dlg": GradientMatching(
        distance="l2",
        optimiser="lbfgs",
        learning_rate=1.0,
        schedule="constant",
        steps=300,
        signed=False,
        box=False,
        total_variation=0.0,
        optimise_labels=True,
        tolerance=1e-9,
    ),
    # Inverting Gradients with fewer steps, a smooth schedule and a stronger prior.
    "quick": GradientMatching(steps=600, schedule="cosine", total_variation=3e-3),
}


def find_attack(name: str) -> Attack:
    """Find the attack called `name`."""
    if name not in ATTACKS:
        raise UnknownNameError("attack", name, ATTACKS)
    return ATTACKS[name]
