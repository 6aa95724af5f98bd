"""How a claim is judged and shown."""

from collections.abc import Callable, Sequence
from functools import partial

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.experiment import Claim, Experiment, Material, Rendering
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.units import Unit
from gradveil.experiments.paper.verdicts import Finding, undecided


def make_claim(name: str, title: str, claim: Claim, units: Callable[[Scale], Sequence[Unit]]) -> Experiment:
    """Make the experiment of a claim: it runs what its rule needs, and renders its finding."""
    return Experiment(name, title, units, partial(render, claim), claim)


def find(claim: Claim, material: Material) -> Finding:
    """Judge a claim; a scale that only shows that everything runs decides nothing, whatever it measured."""
    if not material.scale.decides:
        return undecided(
            f"`{material.scale.name}` only shows that everything runs: tiny models, few images, a few steps",
            "nothing that could count",
        )
    return claim.judge(material)


def render(claim: Claim, material: Material) -> Rendering:
    finding = find(claim, material)
    return Rendering(
        [
            f"- **Claim:** {claim.statement}",
            f"- **The paper says:** {claim.paper}",
            f"- **The {claim.second} says:** {claim.replication}",
            f"- **Rule:** {claim.rule}",
            f"- **We measure** (scale `{material.scale.name}`): {finding.measured}.",
            f"- **Verdict: {finding.verdict}.** Why: {finding.why}.",
            "",
            *write_parts(finding),
        ]
    )


def write_parts(finding: Finding) -> list[str]:
    """Write the findings of the parts of a claim, a line each."""
    if not finding.parts:
        return []
    rows = [[name, part.measured, part.verdict, part.why] for name, part in finding.parts]
    return [*write_table(("part", "we measure", "verdict", "why"), rows), ""]
