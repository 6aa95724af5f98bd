"""Claim 1: with searched policies, reconstruction attacks become infeasible."""

from gradveil.experiments.paper.claims import make_claim
from gradveil.experiments.paper.experiment import Claim, Material
from gradveil.experiments.paper.policy_table import HYBRID
from gradveil.experiments.paper.published import PAIRS, TABLE_1, P, R
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.table_1 import make_table
from gradveil.experiments.paper.units import Unit
from gradveil.experiments.paper.verdicts import ACCURACY_COST, AT_CHANCE_IMAGES, EPSILON, Finding, combine


def list_units(scale: Scale) -> list[Unit]:
    return [unit for letter in PAIRS for unit in make_table(letter, scale).units(scale)]


def judge(material: Material) -> Finding:
    """Judge the hybrid of each network against attackers who are told of it."""
    parts = [part for letter in PAIRS for part in make_table(letter, material.scale).parts(PAIRS[letter], material)]
    return combine(parts)


def published(paper: str) -> str:
    """Say how far PSNR falls in a paper's four tables."""
    falls = [(values["none"][paper].psnr, values[HYBRID][paper].psnr) for values in TABLE_1.values()]
    return ", ".join(f"{before:g} → {after:g} dB" for before, after in falls)


CLAIM = make_claim(
    "claim-1",
    "Claim 1: reconstruction attacks become infeasible",
    Claim(
        "Augmenting training samples with carefully selected policies makes reconstruction attacks infeasible.",
        f"yes: PSNR falls from none to hybrid, {published(P)} (Tables 1a–d).",
        f"yes on average, though some images stay badly protected: {published(R)} (Tables 1a–d).",
        "the aligned score of the strongest gradient matching at T(x) or x, less that of wrong updates (those of other "
        "images of the class), must surely fall under the hybrid, and surely "
        f"below {EPSILON:g} dB on {AT_CHANCE_IMAGES} images or more, for at most {ACCURACY_COST:g} points of accuracy, "
        "with all four networks; the control is `crop-flip`. It fails where it surely falls by less than "
        f"{EPSILON:g} dB. And who learns on public images must no longer surely pick the image out of 20 of its class "
        "more often than by chance, and surely less often than without the policy; it fails where the image is still "
        "surely picked out.",
        judge,
    ),
    list_units,
)
