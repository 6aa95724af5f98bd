"""Claim 5: good policies distort details and keep semantics."""

from gradveil.experiments.paper.claims import make_claim
from gradveil.experiments.paper.experiment import Claim, Material
from gradveil.experiments.paper.figure_6 import SEARCHED, ends, layers_of, list_units, rows_of
from gradveil.experiments.paper.policy_table import NONE
from gradveil.experiments.paper.verdicts import SIMILARITY_GAP, Finding, judge_layers
from gradveil.metrics import ClusterInterval, paired_interval


def judge(material: Material) -> Finding:
    """Judge where the similarity of shallow and of deep layers ends, image by image."""
    plain, searched = (rows_of(label, material) for label in (NONE, SEARCHED))
    layers = layers_of(plain)
    if not layers or not searched:
        return judge_layers(None, None)

    def compare(chosen: list[str]) -> ClusterInterval | None:
        return paired_interval(ends(plain, chosen), ends(searched, chosen))

    half = len(layers) // 2
    return judge_layers(compare(layers[:half]), compare(layers[half:]))


CLAIM = make_claim(
    "claim-5",
    "Claim 5: details are distorted, semantics kept",
    Claim(
        "A good policy distorts the details of the training samples and maintains the semantic information.",
        "yes: with the searched policy the similarity of gradients stays lower in shallow layers, and is the same in "
        "deep ones (Figure 6).",
        "yes: as in the paper (Figure 5).",
        f"at the end of the attack, similarity in shallow layers must surely be lower with {SEARCHED} than without, by "
        f"{SIMILARITY_GAP:g} on average, and in deep layers surely within ± {SIMILARITY_GAP:g}.",
        judge,
    ),
    list_units,
)
