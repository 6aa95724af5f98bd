"""What K asks of attacks: large batches, wide and deep networks, several local epochs, training, equal restarts.

K is S. Sirpurkar's critique (2021) of Geiping et al., "Inverting Gradients" (NeurIPS 2020). No policy is in use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import Cell, attack_units, train_units, with_fields
from gradveil.experiments.paper.claims import render as render_claim
from gradveil.experiments.paper.experiment import Claim, Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import BASE, PUBLISHED_ATTACK, describe_network
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.text import (
    ABOUT_EXCESS,
    EXCESS,
    write_count,
    write_excess,
    write_interval,
    write_psnr,
    write_share,
)
from gradveil.experiments.paper.units import AttackUnit, Phase, Unit
from gradveil.experiments.paper.verdicts import Finding, judge_difference, judge_leak, judge_spread

SECOND = "critique"
NONE = "none"
FAST = "fast"
RIVALS = (PUBLISHED_ATTACK, "adam-l1", "adam-l2", "sgd-cosine")
COLUMNS = ("cell", "n", "PSNR, dB", "gain over chance, dB", "aligned, x", "x picked out", EXCESS)
Cells = Mapping[str, Sequence[AttackUnit]]


@dataclass(frozen=True)
class Point:
    """One of K's points: its cells by name, what is claimed, and the rule."""

    name: str
    title: str
    cells: Callable[[Scale], Cells]
    claim: Claim


def plain_units(
    scale: Scale, attack: str, *, model: str | None = None, phase: Phase = "init", images: int | None = None
) -> list[AttackUnit]:
    """Attack images without a policy, on a network of the first pair's data; as many as a cell has unless given."""
    network = scale.networks["a"]
    chosen = network if model is None else replace(network, model=model)
    units = attack_units(train_units(chosen, BASE, scale), NONE, attack, scale, images=images)
    steps = scale.point_steps if attack == FAST else scale.steps.get(attack)
    return with_fields(units, phase=phase, steps=steps)


def batch_cells(scale: Scale) -> Cells:
    """List a round of each batch size, for clients with so many images; at least as many images as a small cell."""
    found = {}
    for size in scale.batch_sizes:
        count = -(-scale.images // size) * size
        units = plain_units(scale, FAST, images=count)
        model = units[0].model
        found[f"{size} images a client"] = [
            replace(units[0], model=replace(model, seed=seed), first=first, count=size, per_client=size)
            for seed in scale.seeds
            for first in range(0, count, size)
        ]
    return found


def width_cells(scale: Scale) -> Cells:
    return {model: plain_units(scale, FAST, model=model) for model in scale.widths}


def depth_cells(scale: Scale) -> Cells:
    return {model: plain_units(scale, FAST, model=model) for model in scale.depths}


def local_cells(scale: Scale) -> Cells:
    """List clients of two images who take several local epochs with both at once."""
    plain = [unit for unit in plain_units(scale, FAST) if unit.count % 2 == 0]
    return {
        f"{epochs} local epoch{'s' * (epochs > 1)}": with_fields(plain, per_client=2, epochs=epochs)
        for epochs in scale.local_epochs
    }


def training_cells(scale: Scale) -> Cells:
    phases: tuple[tuple[str, Phase], ...] = (("untrained", "init"), ("trained", "final"))
    return {name: plain_units(scale, PUBLISHED_ATTACK, phase=phase) for name, phase in phases}


def restart_cells(scale: Scale) -> Cells:
    """List four attacks with as many restarts each; of restarts the one with the lowest matching loss counts."""
    return {
        attack: with_fields(plain_units(scale, attack, phase="final"), restarts=scale.equal_restarts)
        for attack in RIVALS
    }


def cells_of(point: Point, material: Material) -> dict[str, Cell]:
    return {name: Cell.of(units, material.results) for name, units in point.cells(material.scale).items()}


def list_units(point: Point, scale: Scale) -> list[Unit]:
    return [unit for units in point.cells(scale).values() for unit in units]


def render(point: Point, material: Material) -> Rendering:
    """Write the finding and the cells."""
    rows = [
        [
            name,
            write_count(cell),
            write_psnr(cell),
            write_interval(cell.interval("gain")),
            write_interval(cell.interval("advantage_original")),
            write_share(cell, "identified_original"),
            write_excess(cell),
        ]
        for name, cell in cells_of(point, material).items()
    ]
    return Rendering(
        [
            *render_claim(point.claim, material).lines,
            f"{describe_cells(point.cells(material.scale), material.scale)} {ABOUT_EXCESS}",
            "",
            *write_table(COLUMNS, rows),
            "",
        ]
    )


def describe_cells(cells: Cells, scale: Scale) -> str:
    """Say what is attacked; where nothing is trained, no training is described."""
    units = [unit for one in cells.values() for unit in one]
    if any(unit.phase == "final" for unit in units):
        return describe_network(scale.networks["a"], scale)
    first = units[0]
    steps = "its own number of" if first.steps is None else first.steps
    return (
        f"Untrained networks, {first.model.data}, seed {first.model.seed}, `{first.attack}` with {steps} steps; "
        "evaluation mode, labels known (a diagnostic)."
    )


def last_cell(make: Callable[[Scale], Cells], material: Material) -> Cell:
    """Return the most demanding cell, the last one."""
    units = list(make(material.scale).values())[-1]
    return Cell.of(units, material.results)


def judge_last(make: Callable[[Scale], Cells], material: Material) -> Finding:
    return judge_leak(last_cell(make, material).interval("excess"))


def judge_depths(material: Material) -> Finding:
    """Judge the deepest network; what is measured says how wide it is."""
    deepest = list(depth_cells(material.scale))[-1]
    found = judge_last(depth_cells, material)
    return replace(found, measured=f"untrained `{deepest}`: {found.measured}")


def judge_widths(material: Material) -> Finding:
    cells = [Cell.of(units, material.results) for units in width_cells(material.scale).values()]
    wide, narrow = (list(cell.values("psnr_transformed").values()) for cell in (cells[-1], cells[0]))
    return judge_spread(wide, narrow)


def judge_training(material: Material) -> Finding:
    untrained, trained = (Cell.of(units, material.results) for units in training_cells(material.scale).values())
    return judge_difference(untrained.less(trained, "excess"), "untrained less trained")


def judge_restarts(material: Material) -> Finding:
    """Judge the cosine against the best of its rivals."""
    cells = {name: Cell.of(units, material.results) for name, units in restart_cells(material.scale).items()}
    ours = cells.pop(PUBLISHED_ATTACK)
    there = {name: mean for name, cell in cells.items() if (mean := cell.mean("excess")) is not None}
    if not there:
        return judge_difference(None, "")
    best = max(there, key=lambda name: there[name])
    return judge_difference(ours.less(cells[best], "excess"), f"`{PUBLISHED_ATTACK}` less `{best}`")


POINTS = [
    Point(
        "k-batch-size",
        "K: batches of up to 100 images",
        batch_cells,
        Claim(
            "Images leak from gradients of batches of up to 100.",
            "tries batches of one only: they are the strongest attack (§5.1).",
            "some images of a batch of 100 come close to the originals, with a high variance over classes.",
            "the aligned score over that of wrong updates, at the largest batch, must surely be above 0.",
            partial(judge_last, batch_cells),
            SECOND,
        ),
    ),
    Point(
        "k-width",
        "K: ResNet-18 by width",
        width_cells,
        Claim(
            "Wider networks have a higher variance of reconstruction.",
            "not tried.",
            "higher width leads to higher variance, so with several attempts wider networks are more at risk.",
            "the spread of PSNR over images must be larger for the widest than for the narrowest (Levene's test, 5%).",
            judge_widths,
            SECOND,
        ),
    ),
    Point(
        "k-depth",
        "K: deeper networks up to ResNet-152",
        depth_cells,
        Claim(
            "Depth hardly matters: images leak from ResNet-152 as well.",
            "not tried.",
            "depth hardly matters.",
            "the aligned score over that of wrong updates, on the deepest network, must surely be above 0.",
            judge_depths,
            SECOND,
        ),
    ),
    Point(
        "k-local-epochs",
        "K: several local epochs",
        local_cells,
        Claim(
            "Averaging over several local epochs does not deter the attacker.",
            "not tried.",
            "it does not.",
            "the aligned score over that of wrong updates, at the most epochs, must surely be above 0.",
            partial(judge_last, local_cells),
            SECOND,
        ),
    ),
    Point(
        "k-training",
        "K: trained and untrained networks",
        training_cells,
        Claim(
            "Trained networks are harder to attack than untrained ones.",
            "attacks trained networks only.",
            "the attack outperforms others on both, and trained networks are the harder case.",
            "the score over that of wrong updates must surely be larger on the untrained network, on the same images.",
            judge_training,
            SECOND,
        ),
    ),
    Point(
        "k-restarts",
        "K: equal restarts for every attack",
        restart_cells,
        Claim(
            "The cosine with Adam is stronger than other distances when each attack has as many restarts.",
            "gives its attacks from 1 to 16 restarts.",
            "16 restarts for one attack only are a generous advantage; others must get them as well.",
            "the score over that of wrong updates must surely be larger than for the best of three rivals with as "
            "many restarts.",
            judge_restarts,
            SECOND,
        ),
    ),
]
EXPERIMENTS = [
    Experiment(point.name, point.title, partial(list_units, point), partial(render, point), point.claim)
    for point in POINTS
]
