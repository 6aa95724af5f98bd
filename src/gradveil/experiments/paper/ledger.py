"""The ledger: for each claim what was published, what we measured, and the verdict; nothing in it is typed by hand."""

from collections.abc import Sequence

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.claims import find, render
from gradveil.experiments.paper.experiment import Experiment, Material
from gradveil.experiments.paper.policy_table import PUBLISHED_ATTACK
from gradveil.experiments.paper.published import PAIRS
from gradveil.experiments.paper.quirks import QUIRKS
from gradveil.experiments.paper.registry import EXPERIMENTS
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.study import Line
from gradveil.experiments.paper.table_1 import GLANCE_COLUMNS, glance_line
from gradveil.experiments.paper.text import ABOUT_EXCESS, NOT_RUN
from gradveil.experiments.paper.units import LEARNER, AttackUnit, TrainUnit, Unit, with_models
from gradveil.experiments.versions import name_makers

CLAIMS = [one for one in EXPERIMENTS.values() if one.claim is not None]
TITLE = "# The study, reproduced"
RULES_CHANGED = (
    "## Rules changed after results were seen",
    "",
    "- Milder, claim 4: a short training fails nothing.",
    "- Milder, claim 5: layers that may or may not differ fail nothing.",
    "- Milder, K's points: an attack that finds nothing does not refute that images leak.",
    "- Stricter, every claim about leaks: a score counts only over what the updates of other images of the class "
    "score, not over chance.",
    "- Stricter, claims 1 and 3 and extension 1: an attacker who learns, `learned`, was added, because `standard-6` "
    "found nothing that was certain with or without a policy. Its rule was written before it was run on these "
    "networks.",
)


def write_ledger(material: Material, pages: str) -> str:
    """Write the page; `pages` is the way to the folder of the tables and figures."""
    return "\n".join(
        [
            TITLE,
            "",
            "This page is written by `gradveil reproduce all --table`; nothing in it is typed by hand. It compares our "
            'figures with those of Gao et al., "Privacy-preserving Collaborative Learning with Automatic '
            'Transformation Search" (2021), here P, and of its replication by Drabent et al. (2022), R; K is a '
            "critique by Sirpurkar (2021) of the attack that both use.",
            "",
            describe_scale(material.scale),
            "",
            "Every rule of a verdict was written before any result was seen. "
            "[Five were changed or added since](#rules-changed-after-results-were-seen).",
            "",
            "## The verdicts",
            "",
            *write_table(("claim", "verdict", "run"), [verdict_line(one, material) for one in CLAIMS]),
            "",
            "## Table 1 at a glance",
            "",
            f"PSNR of `{PUBLISHED_ATTACK}` against what the model was fed, as published. Chance is the best guess of "
            f"someone who saw no update. {ABOUT_EXCESS} `{LEARNER}` is told the policy and picks by its picture of x; "
            "chance is 5%.",
            "",
            *write_table(GLANCE_COLUMNS, [glance_line(letter, material) for letter in PAIRS]),
            "",
            "## Claim by claim",
            "",
            *(line for one in CLAIMS for line in write_claim(one, material, pages)),
            "## Tables and figures",
            "",
            *write_table(("experiment", "run", "images attacked", "page"), progress_lines(material, pages)),
            "",
            "## What the published code did without saying so",
            "",
            *write_table(
                ("quirk", "published", "here"), [[f"`{q.name}`", q.published, q.ours] for q in QUIRKS.values()]
            ),
            "",
            "Not switched: Fashion-MNIST stays 28×28 with its own statistics, where the published code brought it to "
            "32×32 with those of MNIST; a restart without a finite loss cannot win.",
            "",
            *RULES_CHANGED,
            "",
            *write_sources(material),
        ]
    )


def describe_scale(scale: Scale) -> str:
    """Say what the figures are of."""
    networks = ", ".join(f"`{one.model}` on {one.data}" for one in dict.fromkeys(scale.networks.values()))
    seeds = f"{len(scale.seeds)} seed{'s' * (len(scale.seeds) > 1)}"
    return (
        f"Scale `{scale.name}`: {networks}; {scale.images} images a cell, {seeds}. A cell that was not run says so. P: "
        "Gao et al. (2021); R: Drabent et al. (2022)."
    )


def verdict_line(one: Experiment, material: Material) -> list[str]:
    """Give the verdict, unless nothing was run, and how much of what it needs was run."""
    assert one.claim is not None
    state = state_of(one, material)
    return [one.title, "–" if state == NOT_RUN else f"**{find(one.claim, material).verdict}**", state]


def state_of(one: Experiment, material: Material) -> str:
    """Say how much of an experiment was run."""
    units = with_models(one.units(material.scale))
    done = sum(unit.key in material.results.lines for unit in units)
    return "whole" if done == len(units) else f"{done} of {len(units)} units" if done else NOT_RUN


def write_claim(one: Experiment, material: Material, pages: str) -> list[str]:
    assert one.claim is not None
    return [f"### {one.title}", "", *render(one.claim, material).lines, f"[The page]({pages}{one.name}.md)", ""]


def progress_lines(material: Material, pages: str) -> list[list[str]]:
    return [progress_line(one, material, pages) for one in EXPERIMENTS.values()]


def progress_line(one: Experiment, material: Material, pages: str) -> list[str]:
    """Say how much of an experiment was run, and where its page is."""
    units = (unit for unit in one.units(material.scale) if unit.key in material.results.lines)
    attacked = sum(unit.count for unit in dict.fromkeys(units) if isinstance(unit, AttackUnit))
    return [one.title, state_of(one, material), f"{attacked}", f"[{one.name}]({pages}{one.name}.md)"]


def write_sources(material: Material) -> list[str]:
    """Say which software and machines made the lines."""
    units: list[Unit] = list(dict.fromkeys(unit for one in EXPERIMENTS.values() for unit in one.units(material.scale)))
    every = with_models(units)
    lines = material.results.used(every)
    trained = sum(isinstance(unit, TrainUnit) and unit.key in material.results.lines for unit in every)
    return [
        "## Where these figures come from",
        "",
        f"{len(lines)} of {len(every)} units, {trained} of them trained models.",
        "",
        *makers_of(lines),
        "",
    ]


def makers_of(lines: Sequence[Line]) -> list[str]:
    return name_makers(lines) if lines else ["Nothing was run yet."]
