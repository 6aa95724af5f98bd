"""The scores of a policy: what it hides (S_pri and others) and what it costs (S_acc), without training with it."""

from gradveil.scores.accuracy import AccuracyScore
from gradveil.scores.base import Score, ScoreInputs
from gradveil.scores.blind_guess import BlindGuessScore
from gradveil.scores.brief_attack import BRIEF_ATTACK, BriefAttackScore
from gradveil.scores.image_choice import choose_accuracy_images, choose_privacy_images, count_scorable
from gradveil.scores.policy_draws import function_of, simplify
from gradveil.scores.privacy import PrivacyRiseScore, PrivacyScore
from gradveil.scores.quadrature import Quadrature, find_quadrature
from gradveil.scores.registry import EXACT, SCORES, ScoreKind, find_score
from gradveil.scores.sensitivity import SensitivityScore

__all__ = [
    "BRIEF_ATTACK",
    "EXACT",
    "SCORES",
    "AccuracyScore",
    "BlindGuessScore",
    "BriefAttackScore",
    "PrivacyRiseScore",
    "PrivacyScore",
    "Quadrature",
    "Score",
    "ScoreInputs",
    "ScoreKind",
    "SensitivityScore",
    "choose_accuracy_images",
    "choose_privacy_images",
    "count_scorable",
    "find_quadrature",
    "find_score",
    "function_of",
    "simplify",
]
