"""Scores for rebuilt images: pure functions of tensors."""

from gradveil.metrics.aligned import Alignment, align
from gradveil.metrics.floor import Floor, choose_floor, make_guesses
from gradveil.metrics.front import pareto_front
from gradveil.metrics.intervals import Interval, mean_interval
from gradveil.metrics.matching import assign
from gradveil.metrics.psnr import psnr
from gradveil.metrics.ssim import ssim

__all__ = [
    "Alignment",
    "Floor",
    "Interval",
    "align",
    "assign",
    "choose_floor",
    "make_guesses",
    "mean_interval",
    "pareto_front",
    "psnr",
    "ssim",
]
