"""Attacks: how an honest-but-curious receiver rebuilds images from an update.

`Attack` is what to subclass for an attack of your own. `GradientMatching` is put together from the values that are
exported beside it.
"""

from gradveil.attacks.analytic import Analytic, linear_layers, read_inputs
from gradveil.attacks.base import Attack, Progress
from gradveil.attacks.choices import Choice, LowestLoss
from gradveil.attacks.cocktail_party import CocktailParty
from gradveil.attacks.descent import (
    Descent,
    Schedule,
    Sign,
    constant,
    cosine_decay,
    hard_sign,
    soft_sign,
    three_drops,
    unsigned,
    warm_cosine,
)
from gradveil.attacks.distances import Distance, cosine, direction, l1, l2, layerwise
from gradveil.attacks.ensemble import Ensemble
from gradveil.attacks.fedavg import FederatedAveraging
from gradveil.attacks.knowledge import Knowledge
from gradveil.attacks.labels import find_labels, restore_counts, restore_labels
from gradveil.attacks.learned import LEARNED_VERSION, Learned
from gradveil.attacks.learned_start import LearnedStart
from gradveil.attacks.matching import GradientMatching
from gradveil.attacks.mixtures import change_noise, count_images
from gradveil.attacks.optimisers import Adam, LimitedMemory, Nesterov, Optimiser
from gradveil.attacks.penultimate import WithFeatures
from gradveil.attacks.priors import Priors, Variation, opponent_slope, variation_slope
from gradveil.attacks.ranking import matching_loss
from gradveil.attacks.recipes import ATTACKS, STANDARD_VERSION, find_attack, name_attack
from gradveil.attacks.rehearsed import Rehearsed
from gradveil.attacks.restarts import Restarts
from gradveil.attacks.rounds import ReleasedRound, attack_clients_together, attack_together
from gradveil.attacks.spear import Spear
from gradveil.attacks.stages import SecondStage
from gradveil.attacks.starts import FAINT, BestGuess, ClassMean, Noise, PublicImage, Start, Tiles

__all__ = [
    "ATTACKS",
    "FAINT",
    "LEARNED_VERSION",
    "STANDARD_VERSION",
    "Adam",
    "Analytic",
    "Attack",
    "BestGuess",
    "Choice",
    "ClassMean",
    "CocktailParty",
    "Descent",
    "Distance",
    "Ensemble",
    "FederatedAveraging",
    "GradientMatching",
    "Knowledge",
    "Learned",
    "LearnedStart",
    "LimitedMemory",
    "LowestLoss",
    "Nesterov",
    "Noise",
    "Optimiser",
    "Priors",
    "Progress",
    "PublicImage",
    "Rehearsed",
    "ReleasedRound",
    "Restarts",
    "Schedule",
    "SecondStage",
    "Sign",
    "Spear",
    "Start",
    "Tiles",
    "Variation",
    "WithFeatures",
    "attack_clients_together",
    "attack_together",
    "change_noise",
    "constant",
    "cosine",
    "cosine_decay",
    "count_images",
    "direction",
    "find_attack",
    "find_labels",
    "hard_sign",
    "l1",
    "l2",
    "layerwise",
    "linear_layers",
    "matching_loss",
    "name_attack",
    "opponent_slope",
    "read_inputs",
    "restore_counts",
    "restore_labels",
    "soft_sign",
    "three_drops",
    "unsigned",
    "variation_slope",
    "warm_cosine",
]
