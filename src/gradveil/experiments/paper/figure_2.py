"""P and R, Figure 2: S_pri against the PSNR of the attack, over random policies."""

from dataclasses import dataclass
from functools import lru_cache

import torch

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import Cell, attack_units, train_units, with_fields
from gradveil.experiments.paper.drawing import draw_scatter
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import BASE, PUBLISHED_ATTACK
from gradveil.experiments.paper.published import CORRELATION, CORRELATION_STEPS, P, R
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.text import ABOUT_EXCESS, EXCESS, NOT_RUN
from gradveil.experiments.paper.units import AttackUnit, ScoreUnit, Unit
from gradveil.experiments.paper.verdicts import Correlation, correlate
from gradveil.metrics import mean_interval
from gradveil.rng import generator
from gradveil.scores import function_of
from gradveil.transforms import CATALOGUE, Policy

LENGTH = 3
FIGURES = {
    "PSNR, dB": "psnr_transformed",
    "chance floor, dB": "floor_transformed",
    "PSNR − floor, dB": "gain",
    EXCESS: "excess",
}


@dataclass(frozen=True)
class Point:
    """One policy: its mean S_pri, and the mean figures of the attack that are known."""

    policy: str
    score: float
    figures: dict[str, float]
    images: int


@lru_cache(maxsize=4)
def random_policies(count: int) -> tuple[str, ...]:
    """Draw policies of three transformations, no two of the same function."""
    source = generator(0, "figure 2")
    found: dict[str, Policy] = {}
    while len(found) < count:
        policy = Policy(tuple(torch.randint(len(CATALOGUE), (LENGTH,), generator=source).tolist()))
        found.setdefault(function_of(policy), policy)
    return tuple(map(str, found.values()))


def score_of(policy: str, scale: Scale) -> ScoreUnit:
    (model, *_) = train_units(scale.semi, BASE, scale)
    return ScoreUnit(model, policy, scale.scored_images, quadrature=scale.quadrature)


def attacks_of(policy: str, scale: Scale) -> list[AttackUnit]:
    """Attack what clients of a policy release, on the model that the policy is scored on."""
    (model, *_) = train_units(scale.semi, BASE, scale)
    units = attack_units([model], f"policy:{policy}", PUBLISHED_ATTACK, scale, images=scale.correlation_images)
    return with_fields(units, steps=CORRELATION_STEPS if scale.decides else scale.steps[PUBLISHED_ATTACK])


def list_units(scale: Scale) -> list[Unit]:
    policies = random_policies(scale.correlation_policies)
    scores: list[Unit] = [score_of(policy, scale) for policy in policies]
    return [*scores, *(unit for policy in policies for unit in attacks_of(policy, scale))]


def make_points(material: Material) -> list[Point]:
    """List the policies that were scored and attacked."""
    points = []
    for policy in random_policies(material.scale.correlation_policies):
        line = material.results.find(score_of(policy, material.scale))
        cell = Cell.of(attacks_of(policy, material.scale), material.results)
        if line is not None and cell.count:
            means = {name: mean for name in FIGURES.values() if (mean := cell.mean(name)) is not None}
            points.append(Point(policy, mean_interval(line["scores"]).mean, means, cell.count))
    return points


def pairs_of(name: str, points: list[Point]) -> tuple[list[float], list[float]]:
    """Return S_pri and a figure of the attack, policy by policy, where it is known."""
    known = [point for point in points if name in point.figures]
    return [point.score for point in known], [point.figures[name] for point in known]


def correlations(points: list[Point]) -> dict[str, Correlation | None]:
    """Correlate S_pri with each figure of the attack."""
    return {name: correlate(*pairs_of(name, points)) for name in FIGURES.values()}


def render(material: Material) -> Rendering:
    points = make_points(material)
    found = correlations(points)
    rows = [
        [title, write_r(found[name]), f"{len(points)}", f"{sum(point.images for point in points)}"]
        for title, name in FIGURES.items()
    ]
    figures = {}
    if points:
        clouds = {title: pairs_of(name, points) for title, name in FIGURES.items()}
        figures["figure-2.png"] = draw_scatter(clouds, f"{len(points)} random policies", "S_pri")
    return Rendering(
        [
            "## Figure 2: does S_pri predict the attack?",
            "",
            f"Pearson's r of S_pri, over random policies, with the published attack's figures against T(x), on "
            f"the same semi-trained `{material.scale.semi.model}`; 95% interval in brackets. P: {CORRELATION[P]}; R: "
            f"{CORRELATION[R]}, both with PSNR over 100 policies. {ABOUT_EXCESS}",
            "",
            *write_table(("S_pri with", "r", "policies", "attacked images"), rows),
            "",
            *(f"![S_pri]({name})" for name in figures),
            "",
        ],
        figures,
    )


def write_r(found: Correlation | None) -> str:
    return NOT_RUN if found is None else found.text()


FIGURE = Experiment("figure-2", "Figure 2: S_pri against PSNR over random policies", list_units, render)
