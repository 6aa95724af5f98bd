"""Scores for rebuilt images: pure functions of tensors."""

from gradveil.metrics.aligned import AlignedTargets, Alignment, align
from gradveil.metrics.clusters import ClusterInterval, cluster_interval, paired_interval
from gradveil.metrics.floor import Floor, choose_floor, make_guesses
from gradveil.metrics.front import pareto_front
from gradveil.metrics.intervals import Interval, mean_interval, rate_interval
from gradveil.metrics.matching import assign
from gradveil.metrics.null import Null, holm, limit_of, standardise
from gradveil.metrics.psnr import psnr
from gradveil.metrics.sequential import Answer, ShareTest, bound_share
from gradveil.metrics.ssim import ssim

__all__ = [
    "AlignedTargets",
    "Alignment",
    "Answer",
    "ClusterInterval",
    "Floor",
    "Interval",
    "Null",
    "ShareTest",
    "align",
    "assign",
    "bound_share",
    "choose_floor",
    "cluster_interval",
    "holm",
    "limit_of",
    "make_guesses",
    "mean_interval",
    "paired_interval",
    "pareto_front",
    "psnr",
    "rate_interval",
    "ssim",
    "standardise",
]
