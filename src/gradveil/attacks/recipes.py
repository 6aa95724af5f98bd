"""Named settings."""

from dataclasses import replace

from gradveil.attacks.analytic import Analytic
from gradveil.attacks.base import Attack
from gradveil.attacks.ensemble import Ensemble
from gradveil.attacks.matching import GradientMatching
from gradveil.errors import UnknownNameError

# The prior is weighed against the slope of the distance, so that one weight fits every model and phase.
COSINE = GradientMatching(
    steps=240, schedule="cosine", start="zeros", total_variation=1.0, last_variation=0.3, relative=True
)
# The cosine finds the rough picture; the levelled sum of absolute differences, in which early layers have a say, finds
# the rest. Not for attacks that look through a policy: it lets wrong draws match as well as the right one.
FAST = replace(COSINE, learning_rate=0.2, finish="direction")
STRONG = Ensemble(
    {
        "levelled": replace(FAST, steps=2400, restarts=2, prune=(0.2,)),
        "cosine": replace(COSINE, steps=1200),
    }
)
POLICY_AWARE = replace(COSINE, steps=1200, start="best-guess", knows_policy=True, prune=(0.05, 0.1, 0.2, 0.3))
# Deep Leakage from Gradients as Zhu et al. (2019) wrote it: labels are searched for, nothing is known of images.
DLG = GradientMatching(
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
)
SINGLE: dict[str, Attack] = {
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
    "dlg": DLG,
    "fast": FAST,
    "strong": STRONG,
    # After GradInversion (Yin et al., 2021): statistics of batch normalisation, and restarts that hold together.
    "bn-prior": replace(COSINE, steps=1200, restarts=4, batch_norm=1e-2, consistency=1e-2, energy=1e-4),
    # Coarse images first.
    "multi-scale": replace(COSINE, steps=600, scales=(4, 2, 1)),
    # Starts with knowledge.
    "class-mean": replace(COSINE, steps=600, start="class-mean"),
    "public-image": replace(COSINE, steps=600, start="public-image"),
    "noise": replace(COSINE, steps=600, start="normal"),
    # Knows the set of policies, tries their draws and searches for the original image (Kerckhoffs).
    "policy-aware": POLICY_AWARE,
    # Knows how strong the noise is, and looks for the most likely image instead of the nearest gradient.
    "noise-aware": replace(
        COSINE,
        steps=400,
        start="best-guess",
        relative=False,
        total_variation=0.0,
        last_variation=None,
        knows_noise=True,
    ),
    "analytic": Analytic(),
}

STANDARD_VERSION = 5
"""Raised whenever `standard` attacks otherwise than before: results of different versions are not to be compared."""

STANDARD = Ensemble(
    {
        "analytic": SINGLE["analytic"],
        # Matches untrained networks to the last digit in a few hundred steps; the others then have nothing left to do.
        "l1": replace(COSINE, steps=400, distance="l1"),
        "levelled": replace(FAST, steps=1200),
        "inverting gradients": replace(COSINE, steps=600),
        # Nothing comes near it where activations are smooth; elsewhere it is soon lost, and its loss says so.
        "l-bfgs": replace(DLG, steps=15, start="zeros", optimise_labels=False),
        "bn-prior": replace(COSINE, steps=600, batch_norm=1e-2),
        "noise-aware": SINGLE["noise-aware"],
        "policy-aware": replace(POLICY_AWARE, steps=600),
    }
)

ATTACKS: dict[str, Attack] = {**SINGLE, "standard": STANDARD}


def find_attack(name: str) -> Attack:
    """Find the attack called `name`."""
    if name not in ATTACKS:
        raise UnknownNameError("attack", name, ATTACKS)
    return ATTACKS[name]


def with_steps(attack: Attack, steps: int | None) -> Attack:
    """Give an attack this many steps instead of its own; some take none.

    Every member of an ensemble gets them, but those whose steps take several gradients get fewer.
    """
    if steps is None:
        return attack
    if isinstance(attack, Ensemble):
        return Ensemble({name: as_member(member, steps) for name, member in attack.members.items()})
    return replace(attack, steps=steps) if isinstance(attack, GradientMatching) else attack


def as_member(attack: Attack, gradients: int) -> Attack:
    return with_steps(attack, max(1, gradients // attack.iterations if isinstance(attack, GradientMatching) else 1))
