"""P and R, Table 1: PSNR and accuracy without a policy, with a random one, two searched ones and their hybrid.

Table 1a also says how much of the published effect is crop and flip, the chance floor, and the policy.
"""

from collections.abc import Sequence
from functools import partial

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import Cell
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import HYBRID, NONE, PUBLISHED_ATTACK, PolicyTable, published_table
from gradveil.experiments.paper.published import PAIRS, POLICIES, TABLE_1, P, R
from gradveil.experiments.paper.quirks import CORRECTED, FAITHFUL
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.text import EXCESS, NOT_RUN, write_count, write_excess, write_interval
from gradveil.experiments.paper.units import LEARNER, Unit

SHOWN = POLICIES["a"][0]
"""The policy whose effect is taken apart: the one with the largest."""
SHARE_COLUMNS = ("part of the published effect", "dB", "n")
GLANCE_COLUMNS = (
    *("Table 1, no policy → hybrid, dB", "P", "R", "here", "chance here", "n", EXCESS),
    f"picked out of 20 by `{LEARNER}`, `crop-flip` → hybrid",
)


def make_table(letter: str, scale: Scale) -> PolicyTable:
    return published_table(letter, scale, TABLE_1[letter])


def list_units(letter: str, scale: Scale) -> list[Unit]:
    return make_table(letter, scale).units(scale)


def render(letter: str, material: Material) -> Rendering:
    lines = make_table(letter, material.scale).render(material)
    return Rendering([*lines, *render_shares(material)] if letter == "a" else lines)


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
        ("no part of the sum: the policy, in what the attack finds over wrong updates", base, policy, "excess"),
    )
    rows = []
    for name, first, second, figure in parts:
        found = first.less(second, figure)
        rows.append([name, write_interval(found, 2), "0" if found is None else f"{found.count}"])
    return [
        "### How much of the effect is what",
        "",
        f"`{PUBLISHED_ATTACK}`, the same images in every line; the four lines below the first add up to it. Only the "
        "last line would be protection by the policy.",
        "",
        *write_table(SHARE_COLUMNS, rows),
        "",
    ]


def glance_line(letter: str, material: Material) -> list[str]:
    """Set PSNR without a policy and with the hybrid beside the published ones and beside chance."""
    table = make_table(letter, material.scale)
    cells = [table.cell(label, PUBLISHED_ATTACK, FAITHFUL, material) for label in (NONE, HYBRID)]
    published = [[TABLE_1[letter][label][paper].psnr for label in (NONE, HYBRID)] for paper in (P, R)]
    ours = [[cell.mean(name) for cell in cells] for name in ("psnr_transformed", "floor_transformed")]
    excess = [write_excess(cell) for cell in cells]
    found = NOT_RUN if NOT_RUN in excess else " → ".join(excess)
    learnt = [table.cell(label, LEARNER, CORRECTED, material) for label in (NONE, HYBRID)]
    return [PAIRS[letter], *map(write_fall, (*published, *ours)), write_count(cells[1]), found, write_picked(learnt)]


def write_picked(cells: Sequence[Cell]) -> str:
    """Write the shares that are picked out, with an arrow between them, and of how many images."""
    shares = [cell.share("identified_original") for cell in cells]
    if any(count == 0 for _, count in shares):
        return NOT_RUN
    found = " → ".join(f"{100 * picked / count:.0f}%" for picked, count in shares)
    return f"{found} (n = {min(count for _, count in shares)})"


def write_fall(values: Sequence[float | None]) -> str:
    """Write figures with an arrow between them."""
    known = [f"{value:.1f}" for value in values if value is not None]
    return " → ".join(known) if len(known) == len(values) else NOT_RUN


TABLES = [
    Experiment(
        f"table-1{letter}",
        f"Table 1{letter}: policies on {PAIRS[letter]}",
        partial(list_units, letter),
        partial(render, letter),
    )
    for letter in PAIRS
]
