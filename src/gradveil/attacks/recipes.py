"""Named settings."""

from dataclasses import replace

from gradveil.attacks.analytic import Analytic
from gradveil.attacks.base import Attack
from gradveil.attacks.cocktail_party import CocktailParty
from gradveil.attacks.descent import Descent, constant, cosine_decay, soft_sign, unsigned, warm_cosine
from gradveil.attacks.distances import cosine, l1, l2
from gradveil.attacks.ensemble import Ensemble
from gradveil.attacks.fedavg import FederatedAveraging
from gradveil.attacks.knowledge import Knowledge
from gradveil.attacks.learned import Learned
from gradveil.attacks.learned_start import LearnedStart
from gradveil.attacks.matching import GradientMatching
from gradveil.attacks.optimisers import LimitedMemory, Nesterov
from gradveil.attacks.penultimate import WithFeatures
from gradveil.attacks.priors import Priors, opponent_slope
from gradveil.attacks.rehearsed import Rehearsed
from gradveil.attacks.restarts import Restarts
from gradveil.attacks.spear import Spear
from gradveil.attacks.stages import SecondStage
from gradveil.attacks.starts import FAINT, BestGuess, ClassMean, Noise, PublicImage, Tiles
from gradveil.errors import UnknownNameError

# The prior is weighed against the slope of the distance, so that one weight fits every model and phase.
COSINE = GradientMatching(
    descent=Descent(schedule=cosine_decay, steps=240),
    priors=Priors(total_variation=1.0, last_variation=0.3, relative=True),
    start=Noise(FAINT),
)
# The cosine finds the rough picture; the levelled sum of absolute differences, in which early layers count as much as
# late ones, finds the rest. Not for attacks that look through a policy: it lets wrong draws match as well as the right
# one.
FAST = replace(COSINE, descent=replace(COSINE.descent, learning_rate=0.2), second_stage=SecondStage())
STRONG = Ensemble(
    {
        "levelled": replace(FAST.with_steps(2400), restarts=Restarts(2, prune=(0.2,))),
        "cosine": COSINE.with_steps(1200),
    }
)
POLICY_AWARE = replace(
    COSINE.with_steps(1200),
    start=BestGuess(),
    restarts=Restarts(prune=(0.05, 0.1, 0.2, 0.3)),
    knowledge=Knowledge(policy=True),
)
LBFGS = Descent(
    LimitedMemory, learning_rate=1.0, schedule=constant, steps=300, sign=unsigned, box=False, tolerance=1e-9
)
# Deep Leakage from Gradients as Zhu et al. (2019) wrote it: labels are searched for, nothing is known of images.
DLG = GradientMatching(l2, LBFGS, Priors(total_variation=0.0), knowledge=Knowledge(labels=False))
PUBLISHED_LBFGS = Descent(LimitedMemory, learning_rate=1e-4, schedule=constant, sign=unsigned)
SINGLE: dict[str, Attack] = {
    # The six of Gao et al. (2021), with their settings; adam-cosine is Inverting Gradients (Geiping et al., 2020).
    "adam-cosine": GradientMatching(),
    "adam-l1": GradientMatching(l1),
    "adam-l2": GradientMatching(l2),
    "sgd-cosine": GradientMatching(descent=Descent(Nesterov, learning_rate=0.01)),
    "lbfgs-l2": GradientMatching(
        l2,
        replace(PUBLISHED_LBFGS, steps=50, box=False),
        Priors(total_variation=1e-3),
        Restarts(2),
    ),
    "lbfgs-cosine": GradientMatching(descent=replace(PUBLISHED_LBFGS, steps=300), restarts=Restarts(16)),
    "dlg": DLG,
    "fast": FAST,
    "strong": STRONG,
    # The preset of that name in breaching (Geiping et al., 2022). Differs from it: the last picture counts, where it
    # keeps the one with the lowest objective; the learning rate has fallen so far by then that these are alike.
    "modern": GradientMatching(
        WithFeatures(cosine, 0.1),
        Descent(schedule=warm_cosine, steps=24_000, sign=soft_sign),
        Priors(total_variation=0.1, variation=opponent_slope),
        start=Tiles(4),
    ),
    # After GradInversion (Yin et al., 2021): statistics of batch normalisation, and restarts that hold together.
    "bn-prior": replace(
        COSINE.with_steps(1200),
        restarts=Restarts(4),
        priors=replace(COSINE.priors, batch_norm=1e-2, consistency=1e-2, energy=1e-4),
    ),
    # Coarse images first.
    "multi-scale": replace(COSINE, descent=replace(COSINE.descent, steps=600, scales=(4, 2, 1))),
    # Other starts; two of them need public images.
    "class-mean": replace(COSINE.with_steps(600), start=ClassMean()),
    "public-image": replace(COSINE.with_steps(600), start=PublicImage()),
    "noise": replace(COSINE.with_steps(600), start=Noise()),
    # Knows the set of policies, tries their draws and searches for the original image (Kerckhoffs).
    "policy-aware": POLICY_AWARE,
    # Knows how strong the noise is, and looks for the most likely image instead of the nearest gradient.
    "noise-aware": replace(
        COSINE.with_steps(400),
        start=BestGuess(),
        priors=Priors(total_variation=0.0),
        knowledge=Knowledge(noise=True),
    ),
    # Searches for the order in which a client used its images (after Dimitrov et al., 2022).
    "fedavg": FederatedAveraging(FAST),
    "analytic": Analytic(),
    "spear": Spear(),
    # Features of a linear layer behind convolutions, image by image, then images from features.
    "cocktail-party": CocktailParty(),
    # Learns on public images, under the defences it knows of, what a client would release.
    "learned": Learned(),
}

# Version 6 of `standard`: what needs no public images to learn from. Studies that began with it go on with it.
STANDARD_6 = Ensemble(
    {
        "analytic": SINGLE["analytic"],
        # Whole batches exactly, where `analytic` finds some of their images.
        "spear": SINGLE["spear"],
        # Matches untrained networks to the last digit in a few hundred steps; the others then have nothing left to do.
        "l1": replace(COSINE.with_steps(400), distance=l1),
        "levelled": FAST.with_steps(1200),
        "inverting gradients": COSINE.with_steps(600),
        # Nothing comes near it where activations are smooth; elsewhere it soon diverges, and its loss says so.
        "l-bfgs": replace(DLG.with_steps(15), start=Noise(FAINT), knowledge=Knowledge()),
        "bn-prior": replace(COSINE.with_steps(600), priors=replace(COSINE.priors, batch_norm=1e-2)),
        "noise-aware": SINGLE["noise-aware"],
        "policy-aware": POLICY_AWARE.with_steps(600),
    }
)

STANDARD_VERSION = 10
"""Raised whenever `standard` attacks otherwise than before: results of different versions are not to be compared.

Version 10: `learned` gives a picture of T(x) as well, and the search from the learnt picture begins there; a rehearsal
fills what a shift uncovers with the mean of the class, as audits do, and speaks for another picture of x than that of
T(x) only if it gained two standard errors. Where no defence transforms images it is the same attack as version 9.

Versions 7 to 9 were called `rehearsed`: `learned`, a search from its picture and a rehearsal joined version 6. Without
public images it still is version 6.
"""

# Starts near the picture, so it takes shorter steps than `fast`.
FROM_LEARNED = replace(FAST, start=LearnedStart(fed=True), descent=replace(FAST.descent, learning_rate=0.06))
STANDARD = Ensemble(
    {
        **STANDARD_6.members,
        # Pictures that match badly and are near all the same; only a rehearsal can tell.
        "learned": SINGLE["learned"],
        "from learned": FROM_LEARNED.with_steps(600),
    },
    Rehearsed(),
)

ATTACKS: dict[str, Attack] = {**SINGLE, "standard": STANDARD, "standard-6": STANDARD_6}
"""Every attack by the name that `--attack` takes."""


def find_attack(attack: str | Attack) -> Attack:
    """Find the attack of this name; an attack itself is returned as it is."""
    if isinstance(attack, Attack):
        return attack
    if attack not in ATTACKS:
        raise UnknownNameError("attack", attack, ATTACKS)
    return ATTACKS[attack]


def name_attack(attack: str | Attack) -> str:
    """Return the name of an attack for reports: its name in `ATTACKS`, or else its own."""
    if isinstance(attack, str):
        return attack
    return next((name for name, known in ATTACKS.items() if known == attack), attack.name)
