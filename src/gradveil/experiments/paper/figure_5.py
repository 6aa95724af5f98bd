"""P, Figure 5, and R, Figure 6: S_pri of each of the 50 transformations alone."""

from collections.abc import Sequence

from gradveil.experiments.paper.cells import train_units
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import BASE
from gradveil.experiments.paper.scales import Network, Scale
from gradveil.experiments.paper.units import ScoreUnit, Unit
from gradveil.experiments.single_transforms import (
    FunctionLine,
    make_bars,
    make_lines,
    render_markdown,
    single_policies,
)
from gradveil.metrics import mean_interval
from gradveil.reports import draw_bars


def scores_of(network: Network, scale: Scale) -> dict[str, ScoreUnit]:
    """Score every function of the catalogue, and none, on a semi-trained model."""
    (model, *_) = train_units(network, BASE, scale)
    return {
        name: ScoreUnit(model, str(policy), scale.scored_images, quadrature=scale.quadrature)
        for name, policy in single_policies().items()
    }


def find_scores(network: Network, material: Material) -> dict[str, list[float]] | None:
    """Return S_pri of each image by function; None unless every function was scored."""
    units = scores_of(network, material.scale)
    lines = {name: material.results.find(unit) for name, unit in units.items()}
    found = {name: line["scores"] for name, line in lines.items() if line is not None}
    return found if len(found) == len(units) else None


def list_units(scale: Scale) -> list[Unit]:
    return list(scores_of(scale.semi, scale).values())


def render_scores(network: Network, material: Material, name: str) -> Rendering:
    """Write and draw the ranking; a ranking of some functions only is none."""
    scores = find_scores(network, material)
    if scores is None:
        units = scores_of(network, material.scale)
        done = len(material.results.used(list(units.values())))
        return Rendering(
            [f"Not run: {done} of {len(units)} functions were scored, and a ranking needs all of them.", ""]
        )
    lines, none = make_lines(scores), mean_interval(scores["none"])
    title = f"S_pri on semi-trained {network.model}, {network.data}"
    text = render_markdown(lines, none, title).split("\n")[2:]
    figures = {f"{name}.png": draw_bars(make_bars(lines, none), none.mean, f"{title}; * is one of P's five")}
    return Rendering([*text, f"![S_pri]({name}.png)", ""], figures)


def published_lines(lines: Sequence[FunctionLine]) -> list[FunctionLine]:
    """Keep the functions that are P's best five."""
    return [line for line in lines if line.published]


def render(material: Material) -> Rendering:
    made = render_scores(material.scale.semi, material, "figure-5")
    return Rendering(["## Figure 5: the transformations one by one", "", *made.lines], made.figures)


FIGURE = Experiment("figure-5", "Figure 5: S_pri of the 50 transformations", list_units, render)
