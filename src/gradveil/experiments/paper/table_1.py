"""P and R, Table 1: PSNR and accuracy without a policy, with a random one, two searched ones and their hybrid.

Table 1a also has the share of each quirk in the published effect.
"""

from collections.abc import Sequence
from functools import partial

from gradveil.experiments.paper.cells import Cell, attack_units, train_units, with_fields
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import (
    BASE,
    NONE,
    PUBLISHED_ATTACK,
    PolicyTable,
    describe_network,
    published_table,
)
from gradveil.experiments.paper.published import PAIRS, POLICIES, TABLE_1
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
from gradveil.experiments.paper.text import write_count, write_interval, write_mean, write_psnr, write_table
from gradveil.experiments.paper.units import AttackUnit, Unit

SHOWN = POLICIES["a"][0]
"""The policy whose effect is taken apart: the one with the largest."""
SHARE_COLUMNS = ("part of the published effect", "dB", "n")
QUIRK_COLUMNS = ("as published, but", "no policy", SHOWN, "effect, dB", "n")


def make_table(letter: str, scale: Scale) -> PolicyTable:
    return published_table(letter, scale, TABLE_1[letter])


def list_units(letter: str, scale: Scale) -> list[Unit]:
    units: list[Unit] = make_table(letter, scale).units(scale)
    if letter == "a":
        units += [unit for name in quirks_of(scale) for side in quirk_units(name, scale) for unit in side]
        units += anchor_units(scale)
    return units


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


def anchor_units(scale: Scale) -> list[Unit]:
    """List one cell at the papers' own width, where the scale has it."""
    if scale.anchor is None:
        return []
    models = train_units(scale.anchor, BASE, scale)
    arms = ("none", BASE, f"policy:{SHOWN}")
    found: list[Unit] = [*models]
    for arm in arms:
        found += attack_units(models, arm, PUBLISHED_ATTACK, scale, images=scale.anchor_images)
    return found


def render(letter: str, material: Material) -> Rendering:
    lines = make_table(letter, material.scale).render(material)
    if letter == "a":
        lines += [*render_shares(material), *render_quirks(material), *render_anchor(material)]
    return Rendering(lines)


def render_shares(material: Material) -> list[str]:
    """Take the published effect apart: exactly, image by image, into crop and flip, chance floor, and the attack."""
    table = make_table("a", material.scale)
    plain = table.cell(NONE, PUBLISHED_ATTACK, FAITHFUL, material)
    base = table.cell(NONE, PUBLISHED_ATTACK, CORRECTED, material)
    policy = table.cell(SHOWN, PUBLISHED_ATTACK, CORRECTED, material)
    parts: Sequence[tuple[str, Cell, Cell, str]] = (
        (f"whole: PSNR without a policy less PSNR with {SHOWN}", plain, policy, "psnr_transformed"),
        ("crop and flip, through the chance floor", plain, base, "floor_transformed"),
        ("crop and flip, through what the attack gains over it", plain, base, "gain"),
        ("the policy, through the chance floor", base, policy, "floor_transformed"),
        ("the policy, through what the attack gains over it", base, policy, "gain"),
    )
    rows = []
    for name, first, second, figure in parts:
        found = first.less(second, figure)
        rows.append([name, write_interval(found, 2), "0" if found is None else f"{found.count}"])
    return [
        "### How much of the effect is what",
        "",
        f"`{PUBLISHED_ATTACK}`, the same images in every line; the last four lines add up to the first. Only the last "
        "one is protection by the policy.",
        "",
        *write_table(SHARE_COLUMNS, rows),
        "",
    ]


def render_quirks(material: Material) -> list[str]:
    """Show the published effect with each quirk switched by itself."""
    table = make_table("a", material.scale)
    plain, base = (table.cell(NONE, PUBLISHED_ATTACK, quirks, material) for quirks in (FAITHFUL, CORRECTED))
    policy = table.cell(SHOWN, PUBLISHED_ATTACK, CORRECTED, material)
    rows = [
        quirk_line("as published, on a balanced choice of images", plain, policy),
        quirk_line(f"without `{LOPSIDED_BASE}`: {QUIRKS[LOPSIDED_BASE].ours}", base, policy),
    ]
    for quirk in quirks_of(material.scale):
        first, second = (Cell.of(units, material.results) for units in quirk_units(quirk, material.scale))
        rows.append(quirk_line(f"with `{quirk}`: {QUIRKS[quirk].published}", first, second))
    return [
        "### Faithful and corrected: the share of each quirk",
        "",
        "PSNR against T(x) in dB, ± standard deviation over images. For the cosine, half a gradient is the same as the "
        "whole, so `halved-loss` can change no more here than another rounding does; in Table 2 it acts on other "
        "distances.",
        "",
        *write_table(QUIRK_COLUMNS, rows),
        "",
    ]


def quirk_line(name: str, plain: Cell, policy: Cell) -> list[str]:
    effect = plain.less(policy, "psnr_transformed")
    return [name, write_psnr(plain), write_psnr(policy), write_interval(effect, 2), write_count(policy)]


def render_anchor(material: Material) -> list[str]:
    """Show the cell at the papers' own width; of few images no spread is given."""
    scale = material.scale
    if scale.anchor is None:
        return []
    models = train_units(scale.anchor, BASE, scale)
    rows = []
    for arm in ("none", BASE, f"policy:{SHOWN}"):
        units = attack_units(models, arm, PUBLISHED_ATTACK, scale, images=scale.anchor_images)
        cell = Cell.of(units, material.results)
        floor, gain = write_mean(cell, "floor_transformed"), write_interval(cell.interval("gain"))
        rows.append([f"`{arm}`", write_psnr(cell), floor, gain, write_count(cell)])
    return [
        "### An anchor at the papers' own width",
        "",
        describe_network(scale.anchor, scale)
        + " All arms are attacked on the model that was trained without a policy.",
        "",
        *write_table(("arm", "PSNR", "chance floor", "gain at T(x), dB", "n"), rows),
        "",
    ]


TABLES = [
    Experiment(
        f"table-1{letter}",
        f"Table 1{letter}: policies on {PAIRS[letter]}",
        partial(list_units, letter),
        partial(render, letter),
    )
    for letter in PAIRS
]
