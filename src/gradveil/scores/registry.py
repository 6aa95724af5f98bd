"""The scores by name: how each is made, what it costs, and how a search may approach it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from gradveil.attacks import ClassMean
from gradveil.attacks import Start as AttackStart
from gradveil.errors import UnknownNameError
from gradveil.scores.base import Score, ScoreInputs, block_size
from gradveil.scores.blind_guess import BlindGuessScore
from gradveil.scores.brief_attack import BLOCK, BRIEF_ATTACK, BriefAttackScore
from gradveil.scores.privacy import PrivacyRiseScore, PrivacyScore, Start
from gradveil.scores.quadrature import find_quadrature
from gradveil.scores.sensitivity import PROBES, SensitivityScore
from gradveil.scores.similarity import Form

ROUGH, FINE = "lobatto-3", "lobatto-4"
EXACT = "lobatto-7"
"""The quadrature of a score that is reported; the search begins with rougher ones."""
ERRORS = {ROUGH: 0.02, FINE: 0.008}
"""Measured on semi-trained lenet-relu, convnet-4 and resnet20-1: 0.008, 0.027, 0.011 and 0.008, 0.008, 0.011."""
STEP_GRADIENTS = 3
"""A step of an attack costs about three gradients."""


def count_gradients(rule: str) -> int:
    """Count the gradients that S_pri of one image costs by a quadrature rule."""
    return find_quadrature(rule).gradients


@dataclass(frozen=True)
class ScoreKind:
    """A score: how it is made for a quadrature rule, which only the kinds of S_pri depend on, and its costs.

    `gradients` counts what one image costs by a rule, `block` how many neighbouring images are computed together.
    `rough` and `fine` are cheaper rules that racing begins with, and `errors` says how far each lies from the rule
    that counts: the standard deviation, over policies, of the difference of their means. `label` heads its columns, and
    `unit` says what its figures are, where that is not a rule.
    """

    make: Callable[[ScoreInputs, str], Score]
    label: str
    gradients: Callable[[str], int]
    block: Callable[[str], int]
    rough: str = EXACT
    fine: str = EXACT
    errors: Mapping[str, float] = field(default_factory=dict)
    unit: str | None = None


def make_privacy(inputs: ScoreInputs, rule: str, form: Form = "layerwise", start: Start = "uniform") -> PrivacyScore:
    return PrivacyScore(
        inputs.task.model,
        inputs.images.images,
        inputs.images.labels,
        form=form,
        quadrature=rule,
        start=start,
        loss=inputs.task.loss,
        seed=inputs.seed,
    )


def make_sensitivity(inputs: ScoreInputs, _: str) -> SensitivityScore:
    images = inputs.images
    return SensitivityScore(inputs.task.model, images.images, images.labels, loss=inputs.task.loss, seed=inputs.seed)


def privacy_kind(form: Form = "layerwise", start: Start = "uniform") -> ScoreKind:
    return ScoreKind(
        partial(make_privacy, form=form, start=start),
        "S_pri",
        count_gradients,
        lambda rule: block_size(count_gradients(rule)),
        ROUGH,
        FINE,
        ERRORS,
    )


def brief_attack_kind(steps: int, start: AttackStart = BRIEF_ATTACK.start) -> ScoreKind:
    attack = replace(BRIEF_ATTACK.with_steps(steps), start=start)
    return ScoreKind(
        lambda inputs, _: BriefAttackScore(inputs, attack),
        "brief attack",
        lambda _: STEP_GRADIENTS * steps,
        lambda _: BLOCK,
        unit=f"dB over chance after {steps} steps",
    )


SCORES: dict[str, ScoreKind] = {
    "s-pri": privacy_kind(),
    "s-pri-global": privacy_kind(form="global"),
    "s-pri-normal": privacy_kind(start="normal"),
    "s-pri-rise": ScoreKind(
        lambda inputs, rule: PrivacyRiseScore(make_privacy(inputs, rule)),
        "S_pri above its start",
        lambda rule: count_gradients(rule) + 1,
        lambda _: block_size(1),
        ROUGH,
        FINE,
        ERRORS,
    ),
    "sensitivity": ScoreKind(
        make_sensitivity,
        "sensitivity",
        lambda _: PROBES + 1,
        lambda _: block_size(PROBES + 1),
        unit="log10(1 − GradSim) of an image and its neighbours",
    ),
    "blind-guess": ScoreKind(
        lambda inputs, _: BlindGuessScore(inputs.images, inputs.public, inputs.task.classes, inputs.seed),
        "blind guess",
        lambda _: 1,
        lambda _: BlindGuessScore.block,
        unit="minus the chance floor in dB",
    ),
    "brief-attack": brief_attack_kind(BRIEF_ATTACK.descent.steps),
    "brief-attack-12": brief_attack_kind(12),
    "brief-attack-24": brief_attack_kind(24),
    "brief-attack-8-class-mean": brief_attack_kind(8, ClassMean()),
}
"""Every score by name, and how it is made."""


def find_score(name: str) -> ScoreKind:
    """Look a score up by name."""
    if name not in SCORES:
        raise UnknownNameError("score", name, SCORES)
    return SCORES[name]
