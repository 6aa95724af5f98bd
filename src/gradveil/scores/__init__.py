"""The scores of a policy: what it hides (S_pri) and what it costs (S_acc), without attacking or training."""

from gradveil.scores.accuracy import AccuracyScore
from gradveil.scores.draws import function_of, simplify
from gradveil.scores.places import accuracy_places, scoring_places
from gradveil.scores.privacy import PrivacyScore
from gradveil.scores.quadrature import Quadrature, find_quadrature

__all__ = [
    "AccuracyScore",
    "PrivacyScore",
    "Quadrature",
    "accuracy_places",
    "find_quadrature",
    "function_of",
    "scoring_places",
    "simplify",
]
