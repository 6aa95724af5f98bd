"""R's first extension: the hybrid of CIFAR-100 on Tiny-ImageNet."""

from gradveil.experiments.paper.claims import make_claim
from gradveil.experiments.paper.experiment import Claim, Material
from gradveil.experiments.paper.table_5 import list_units, make_table
from gradveil.experiments.paper.verdicts import Finding, combine


def judge(material: Material) -> Finding:
    return combine(make_table(material.scale).parts("Tiny-ImageNet", material))


CLAIM = make_claim(
    "extension-1",
    "Extension 1: the hybrid of CIFAR-100 on Tiny-ImageNet",
    Claim(
        "Policies searched on one data set make attacks infeasible on a new one.",
        "not tried on this data set.",
        "hardly: 1 dB less PSNR, and 4 points of accuracy lost (Table 5).",
        "as for claim 1, with the hybrid of CIFAR-100 on Tiny-ImageNet.",
        judge,
    ),
    list_units,
)
