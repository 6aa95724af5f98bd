"""Differential privacy in figures: ε, the reconstruction bound, and what other libraries' settings are worth."""

from gradveil.privacy.check import Figures, GaussianRelease, PrivacyCheck, PureRelease, format_epsilon
from gradveil.privacy.flower import AdaptiveClipping, FixedClipping, LocalDpMod, read_flower
from gradveil.privacy.gaussian import (
    classic_deviation,
    gaussian_delta,
    gaussian_epsilon,
    run_epsilon,
    sampled_epsilon,
)
from gradveil.privacy.nvflare import SVTPrivacy, read_nvflare
from gradveil.privacy.opacus import OpacusSettings, read_opacus
from gradveil.privacy.reconstruction import CHANCE, pure_success_bound, success_bound
from gradveil.privacy.settings import Run

__all__ = [
    "CHANCE",
    "AdaptiveClipping",
    "Figures",
    "FixedClipping",
    "GaussianRelease",
    "LocalDpMod",
    "OpacusSettings",
    "PrivacyCheck",
    "PureRelease",
    "Run",
    "SVTPrivacy",
    "classic_deviation",
    "format_epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "pure_success_bound",
    "read_flower",
    "read_nvflare",
    "read_opacus",
    "run_epsilon",
    "sampled_epsilon",
    "success_bound",
]
