"""P and R, Figure 1: GradSim on the way from noise to the image, with and without a searched policy."""

import torch

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import train_units
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import BASE
from gradveil.experiments.paper.published import POLICIES
from gradveil.experiments.paper.quirks import QUIRKS, UNIFORM_START
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.text import NOT_RUN
from gradveil.experiments.paper.units import ScoreUnit, Unit
from gradveil.metrics import mean_interval
from gradveil.reports import draw_similarity

NAMES = ("none", POLICIES["a"][0])
STARTS = ("uniform", "normal")


def score_of(policy: str, start: str, scale: Scale) -> ScoreUnit:
    """Score a policy on the semi-trained model of the first seed, and keep the curves."""
    (model, *_) = train_units(scale.semi, BASE, scale)
    return ScoreUnit(model, policy, scale.scored_images, quadrature=scale.quadrature, start=start, curves=True)


def list_units(scale: Scale) -> list[Unit]:
    return [score_of(policy, start, scale) for start in STARTS for policy in NAMES]


def render(material: Material) -> Rendering:
    """Draw both starts, and write the areas under the curves."""
    figures, rows = {}, []
    for start in STARTS:
        found = {policy: material.results.find(score_of(policy, start, material.scale)) for policy in NAMES}
        curves = {policy: torch.tensor(line["curves"]) for policy, line in found.items() if line is not None}
        points: list[float] = next((line["points"] for line in found.values() if line is not None), [])
        if curves:
            title = f"GradSim, {material.scale.semi.model} on {material.scale.semi.data}, {start} start"
            figures[f"figure-1-{start}.png"] = draw_similarity(curves, points, title)
        for policy, line in found.items():
            scores = None if line is None else mean_interval(line["scores"])
            shown = NOT_RUN if scores is None else scores.text(3)
            rows.append([policy, start, shown, "0" if scores is None else f"{scores.count}"])
    pictures = [f"![GradSim]({name})" for name in figures]
    return Rendering(
        [
            "## Figure 1: the way from noise to the image",
            "",
            f"On the semi-trained `{material.scale.semi.model}`. In the published code "
            f"{QUIRKS[UNIFORM_START].published}. S_pri is the area below the mean curve, ± half the 95% interval over "
            "images; lower is said to hide more.",
            "",
            *write_table(("policy", "start", "S_pri", "n"), rows),
            "",
            *pictures,
            "",
        ],
        figures,
    )


FIGURE = Experiment("figure-1", "Figure 1: GradSim on the way from noise to the image", list_units, render)
