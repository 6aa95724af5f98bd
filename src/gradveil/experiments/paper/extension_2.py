"""R's second extension: the five best transformations on Tiny-ImageNet."""

from gradveil.experiments.paper.claim_6 import judge_network
from gradveil.experiments.paper.claims import render as render_claim
from gradveil.experiments.paper.experiment import Claim, Experiment, Material, Rendering
from gradveil.experiments.paper.figure_5 import render_scores, scores_of
from gradveil.experiments.paper.published import BEST_FIVE_FOUND
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.units import Unit
from gradveil.experiments.paper.verdicts import Finding


def list_units(scale: Scale) -> list[Unit]:
    return list(scores_of(scale.tiny_semi, scale).values())


def judge(material: Material) -> Finding:
    return judge_network(material.scale.tiny_semi, material)


STATEMENT = Claim(
    "The five best transformations are the same on a different data set.",
    "not tried on this data set.",
    f"{BEST_FIVE_FOUND['tiny-imagenet']} of the five are among the best five on Tiny-ImageNet (Figure 6c).",
    "as for claim 6, on a semi-trained network for Tiny-ImageNet.",
    judge,
)


def render(material: Material) -> Rendering:
    """Write the finding, then the ranking."""
    made = render_scores(material.scale.tiny_semi, material, "extension-2")
    return Rendering([*render_claim(STATEMENT, material).lines, *made.lines], made.figures)


CLAIM = Experiment(
    "extension-2", "Extension 2: the five best transformations on Tiny-ImageNet", list_units, render, STATEMENT
)
