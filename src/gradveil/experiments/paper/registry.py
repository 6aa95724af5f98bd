"""The experiments by name, and the order in which `all` runs them."""

from gradveil.experiments.paper import (
    anchor,
    claim_1,
    claim_2,
    claim_3,
    claim_4,
    claim_5,
    claim_6,
    claim_7,
    extension_1,
    extension_2,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    k_points,
    quirk_shares,
    table_1,
    table_2,
    table_3,
    table_4,
    table_5,
)
from gradveil.experiments.paper.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for one in (
        *table_1.TABLES,
        table_2.TABLE,
        table_3.TABLE,
        *table_4.TABLES,
        table_5.TABLE,
        figure_1.FIGURE,
        figure_2.FIGURE,
        figure_3.FIGURE,
        figure_4.FIGURE,
        figure_5.FIGURE,
        figure_6.FIGURE,
        claim_1.CLAIM,
        claim_2.CLAIM,
        claim_3.CLAIM,
        claim_4.CLAIM,
        claim_5.CLAIM,
        claim_6.CLAIM,
        claim_7.CLAIM,
        extension_1.CLAIM,
        extension_2.CLAIM,
        quirk_shares.EXPERIMENT,
        *k_points.EXPERIMENTS,
        anchor.EXPERIMENT,
    )
}
ALL = "all"
FIRST = (
    *("table-1a", "figure-1", "figure-5", "quirks", "table-1c", "table-4a", "figure-2", "table-2"),
    *("table-1d", "table-4b", "k-training", "k-batch-size", "k-width", "k-local-epochs", "table-1b", "table-3"),
)
"""What `all` begins with: what decides most, and of that what is cheap."""
GROUPS = {
    "table-1": ("table-1a", "table-1b", "table-1c", "table-1d"),
    "table-4": ("table-4a", "table-4b"),
    "k-points": tuple(one.name for one in k_points.EXPERIMENTS),
    ALL: tuple(dict.fromkeys((*FIRST, *EXPERIMENTS))),
}
"""Names that stand for several experiments."""


def experiments_of(name: str) -> list[Experiment]:
    """List the experiments that a name stands for."""
    return [EXPERIMENTS[each] for each in GROUPS.get(name, (name,))]
