"""P, Figure 3, and R, Figure 4: loss and accuracy during training, with and without policies."""

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import train_units
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import NONE, arms_of, describe_network
from gradveil.experiments.paper.published import POLICIES
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.text import NOT_RUN
from gradveil.experiments.paper.units import TrainUnit, Unit
from gradveil.reports import draw_curves
from gradveil.training import Epoch

ARMS = {label: arms[0] for label, arms in arms_of(POLICIES["a"]).items()}


def model_of(label: str, scale: Scale) -> TrainUnit:
    (model, *_) = train_units(scale.networks["a"], ARMS[label], scale)
    return model


def list_units(scale: Scale) -> list[Unit]:
    return [model_of(label, scale) for label in ARMS]


def curves_of(label: str, material: Material) -> list[Epoch]:
    """Read the curves of a training; none if it was not run."""
    line = material.results.find(model_of(label, material.scale))
    return [] if line is None else [Epoch(**point) for point in line["curves"]]


def render(material: Material) -> Rendering:
    """Draw the curves, and write where they end."""
    runs = {label: curves_of(label, material) for label in ARMS}
    there = {("no policy" if label == NONE else label): curves for label, curves in runs.items() if curves}
    network = material.scale.networks["a"]
    figures = {"figure-3.png": draw_curves(there, f"{network.model} on {network.data}")} if there else {}
    return Rendering(
        [
            "## Figure 3: training with and without policies",
            "",
            describe_network(network, material.scale),
            "",
            *write_table(
                ("policy", "training loss", "training accuracy, %", "test accuracy, %", "seconds an epoch"),
                [[label, *write_end(curves)] for label, curves in runs.items()],
            ),
            "",
            *(f"![Curves]({name})" for name in figures),
            "",
        ],
        figures,
    )


def write_end(curves: list[Epoch]) -> list[str]:
    """Write the last point of a training; the time is of whatever else the machine did, too."""
    if not curves:
        return [NOT_RUN] * 4
    last = curves[-1]
    tested = NOT_RUN if last.test_accuracy is None else f"{100 * last.test_accuracy:.1f}"
    return [f"{last.train_loss:.2f}", f"{100 * last.train_accuracy:.1f}", tested, f"{last.seconds / len(curves):.0f}"]


FIGURE = Experiment("figure-3", "Figure 3: training with and without policies", list_units, render)
