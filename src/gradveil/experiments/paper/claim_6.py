"""Claim 6: the five transformations that work best."""

from gradveil.experiments.paper.claims import make_claim
from gradveil.experiments.paper.experiment import Claim, Material
from gradveil.experiments.paper.figure_5 import find_scores, list_units, published_lines
from gradveil.experiments.paper.published import BEST_FIVE, BEST_FIVE_FOUND
from gradveil.experiments.paper.scales import Network
from gradveil.experiments.paper.verdicts import Finding, judge_best
from gradveil.experiments.single_transforms import make_lines


def judge_network(network: Network, material: Material) -> Finding:
    """Judge how many of the published five are among the best five on a network."""
    scores = find_scores(network, material)
    if scores is None:
        return judge_best([], 0)
    lines = published_lines(make_lines(scores))
    return judge_best([line.among_best for line in lines], len(scores["none"]))


def judge(material: Material) -> Finding:
    return judge_network(material.scale.semi, material)


CLAIM = make_claim(
    "claim-6",
    "Claim 6: the five best transformations",
    Claim(
        "The five best transformations are horizontal shifting 9, brightness 9, contrast 7, brightness 6, contrast 6.",
        f"entries {', '.join(map(str, BEST_FIVE))} have the lowest S_pri (Figure 5).",
        f"{BEST_FIVE_FOUND['cifar100']} of these five are among its own best five (Figure 6).",
        "each of the five must be among our best five in 95% of the resamples of the images; it fails if at most two "
        "are among them in 5%. It speaks of S_pri, not of what an attack finds.",
        judge,
    ),
    list_units,
)
