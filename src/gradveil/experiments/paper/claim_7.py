"""Claim 7: S_pri is a good measure of privacy."""

from gradveil.experiments.paper.claims import make_claim
from gradveil.experiments.paper.experiment import Claim, Material
from gradveil.experiments.paper.figure_2 import correlations, list_units, make_points
from gradveil.experiments.paper.published import CORRELATION, P, R
from gradveil.experiments.paper.verdicts import STRONG, WEAK, Finding, judge_correlation


def judge(material: Material) -> Finding:
    """Judge the correlation with PSNR, and with what is left of it without the chance floor."""
    found = correlations(make_points(material))
    return judge_correlation(found["psnr_transformed"], found["gain"])


CLAIM = make_claim(
    "claim-7",
    "Claim 7: S_pri measures privacy",
    Claim(
        "S_pri is a good measure of privacy: it is linearly correlated with PSNR.",
        f"Pearson's r = {CORRELATION[P]} over 100 random policies (Figure 2).",
        f"r = {CORRELATION[R]}: hardly any correlation (Figure 2, experiment 10).",
        f"r must surely be above {STRONG:g}, with PSNR and with PSNR less its chance floor; it fails if r with PSNR is "
        f"surely below {WEAK:g}.",
        judge,
    ),
    list_units,
)
