"""Table 1a, faithful and corrected: the published effect with each quirk of the published code switched by itself."""

from statistics import fmean

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import Cell, Key, attack_units, train_units, with_fields
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import BASE, NONE, PUBLISHED_ATTACK, describe_network
from gradveil.experiments.paper.quirks import (
    CIFAR10_STATISTICS,
    CORRECTED,
    FAITHFUL,
    FIRST_IMAGES,
    HALVED_LOSS,
    LOPSIDED_BASE,
    QUIRKS,
)
from gradveil.experiments.paper.scales import CIFAR, Scale
from gradveil.experiments.paper.table_1 import SHOWN, make_table, render_shares
from gradveil.experiments.paper.text import NOT_RUN, write_count, write_interval, write_psnr
from gradveil.experiments.paper.units import AttackUnit, Unit
from gradveil.metrics import paired_interval

COLUMNS = ("setting", "no policy", SHOWN, "effect, dB", "share of the quirk, dB", "n")
Sides = tuple[Cell, Cell]
"""Without a policy and with it."""


def list_units(scale: Scale) -> list[Unit]:
    """List the cells that are compared, then those that each quirk has for itself."""
    table = make_table("a", scale)
    cells = ((NONE, FAITHFUL), (NONE, CORRECTED), (SHOWN, CORRECTED))
    plain = [unit for label, quirks in cells for unit in table.attacks(label, PUBLISHED_ATTACK, quirks, scale)]
    return [*plain, *(unit for name in quirks_of(scale) for side in quirk_units(name, scale) for unit in side)]


def quirks_of(scale: Scale) -> list[str]:
    """List the quirks that have cells of their own here; one is about colour images of CIFAR."""
    colour = scale.networks["a"].data == CIFAR
    return [FIRST_IMAGES, HALVED_LOSS, *([CIFAR10_STATISTICS] if colour else [])]


def quirk_units(quirk: str, scale: Scale) -> tuple[list[AttackUnit], list[AttackUnit]]:
    """List the attacks with one quirk switched on by itself: without a policy, and with the one that is shown."""
    network = scale.networks["a"]
    sides = []
    for trained, released in ((BASE, "none"), (f"policy:{SHOWN}", f"policy:{SHOWN}")):
        odd = (quirk,) if quirk == CIFAR10_STATISTICS else ()
        count = scale.published_images if quirk == FIRST_IMAGES else scale.images
        models = train_units(network, trained, scale, odd)
        units = attack_units(models, released, PUBLISHED_ATTACK, scale, images=count)
        if quirk == FIRST_IMAGES:
            units = with_fields(units, choice="first")
        if quirk == HALVED_LOSS:
            units = with_fields(units, quirks=(HALVED_LOSS,))
        sides.append(units)
    return sides[0], sides[1]


def render(material: Material) -> Rendering:
    """Show the published effect with each quirk switched by itself."""
    table = make_table("a", material.scale)
    plain, base = (table.cell(NONE, PUBLISHED_ATTACK, quirks, material) for quirks in (FAITHFUL, CORRECTED))
    policy = table.cell(SHOWN, PUBLISHED_ATTACK, CORRECTED, material)
    published, even, lopsided = (plain, policy), (base, policy), QUIRKS[LOPSIDED_BASE]
    rows = [
        quirk_line(f"with `{LOPSIDED_BASE}`: {lopsided.published}", published, write_share(published, even)),
        quirk_line(f"without it: {lopsided.ours}", even, ""),
    ]
    for quirk in quirks_of(material.scale):
        first, second = (Cell.of(units, material.results) for units in quirk_units(quirk, material.scale))
        text = f"with `{quirk}` as well: {QUIRKS[quirk].published}"
        rows.append(quirk_line(text, (first, second), write_share((first, second), published)))
    return Rendering(
        [
            "## Table 1a, faithful and corrected: the share of each quirk",
            "",
            describe_network(material.scale.networks["a"], material.scale),
            "",
            "PSNR against T(x) in dB, ± standard deviation over images. The effect is no policy less policy; the share "
            "of a quirk is the effect with it less the effect without it, ± half the 95% interval where both are of "
            "the same images. For the cosine, half a gradient is the same as the whole, so `halved-loss` can change no "
            "more here than another rounding does; in Table 2 it acts on other distances.",
            "",
            *write_table(COLUMNS, rows),
            "",
            *render_shares(material),
        ]
    )


def quirk_line(name: str, sides: Sides, share: str) -> list[str]:
    plain, policy = sides
    effect = plain.less(policy, "psnr_transformed")
    return [name, write_psnr(plain), write_psnr(policy), write_interval(effect, 2), share, write_count(policy)]


def effects_of(sides: Sides) -> dict[Key, float]:
    """Return the effect on each image that both sides have."""
    plain, policy = (side.values("psnr_transformed") for side in sides)
    return {key: plain[key] - policy[key] for key in plain if key in policy}


def write_share(ours: Sides, other: Sides) -> str:
    """Write how much larger one effect is than another; of different images no interval can be given."""
    first, second = effects_of(ours), effects_of(other)
    if not first or not second:
        return NOT_RUN
    if first.keys() == second.keys():
        return write_interval(paired_interval(first, second), 2)
    return f"{fmean(first.values()) - fmean(second.values()):+.2f}"


EXPERIMENT = Experiment("quirks", "Table 1a, faithful and corrected: the share of each quirk", list_units, render)
