"""Claim 4: policies cost training next to nothing."""

import math

from gradveil.experiments.paper.claims import make_claim
from gradveil.experiments.paper.experiment import Claim, Material
from gradveil.experiments.paper.figure_3 import curves_of, list_units, model_of
from gradveil.experiments.paper.policy_table import HYBRID, NONE
from gradveil.experiments.paper.scales import PUBLISHED_TRAINING
from gradveil.experiments.paper.verdicts import FAILS, NEGLIGIBLE_COST, Finding, judge_cost, undecided
from gradveil.training import Epoch

NORMAL = 1.96
PUBLISHED_EPOCHS = PUBLISHED_TRAINING.epochs


def mean_accuracy(curves: list[Epoch]) -> float | None:
    """Average the test accuracy over the epochs that were tested: a slower training has less."""
    tested = [point.test_accuracy for point in curves if point.test_accuracy is not None]
    return sum(tested) / len(tested) if tested else None


def judge(material: Material) -> Finding:
    """Judge the gap in test accuracy, averaged over the epochs, between no policy and the hybrid."""
    plain, hybrid = (mean_accuracy(curves_of(label, material)) for label in (NONE, HYBRID))
    line = material.results.find(model_of(NONE, material.scale))
    if plain is None or hybrid is None or line is None:
        return judge_cost(None, 0.0)
    error = math.sqrt(sum(share * (1 - share) for share in (plain, hybrid)) / line["images"][1])
    found = judge_cost(100 * (plain - hybrid), 100 * NORMAL * error)
    return limit_by_epochs(found, material.scale.networks["a"].training.epochs)


def limit_by_epochs(found: Finding, epochs: int) -> Finding:
    """Let a training that is shorter than the published one fail nothing: in it, a slow start is all there is."""
    measured = f"{found.measured}, over {epochs} epochs"
    if found.verdict == FAILS and epochs < PUBLISHED_EPOCHS:
        return undecided(f"{found.why}, but the papers train for {PUBLISHED_EPOCHS} epochs", measured)
    return Finding(found.verdict, found.why, measured)


CLAIM = make_claim(
    "claim-4",
    "Claim 4: policies cost training next to nothing",
    Claim(
        "The found policies have negligible impact on the efficiency of training.",
        "yes: the training set converges slightly slower, the validation set as fast (Figure 3).",
        "yes: almost no impact (Figure 4).",
        f"test accuracy, averaged over the epochs, must surely fall by at most {NEGLIGIBLE_COST:g} points under the "
        "hybrid; ± the error of the test set. It speaks of one seed. A training that is shorter than the published one "
        "fails nothing.",
        judge,
    ),
    list_units,
)
