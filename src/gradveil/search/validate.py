"""The best policies, really attacked and really trained with: a score is only a proxy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradveil.attacks import STANDARD_VERSION, find_attack
from gradveil.audit import AUDIT_VERSION, WORDS, AuditSettings, run_audit
from gradveil.data import DataSet
from gradveil.errors import SettingsError
from gradveil.metrics import Interval
from gradveil.scores import simplify
from gradveil.search.outcome import ScoredCandidate
from gradveil.search.records import Line
from gradveil.search.score_journal import ScoreJournal
from gradveil.study import OnProgress
from gradveil.training import BRIEF, TrainingSettings
from gradveil.transforms import parse_policy

TRAINING_IMAGES = 5000
CONTROL = "none"
GROUP = 2


@dataclass(frozen=True)
class Validation:
    """How the best policies are tried: few images, a strong attack, a brief training.

    `best` counts the policies, `images` those that each is attacked on. `steps`, if given, replaces the attack's own
    number. `workers` counts the processes of the audit.
    """

    best: int
    attack: str = "standard"
    images: int = 4
    steps: int | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        find_attack(self.attack)
        if self.best < 0 or self.images < 1:
            raise SettingsError(
                f"--validate {self.best} with {self.images} images: give 0 policies or more and 1 image or more"
            )
        if self.steps is not None and self.steps < 1:
            raise SettingsError(f"--validate-steps {self.steps}: an attack takes 1 step or more")

    def to_record(self, data: DataSet) -> dict[str, Any]:
        """Return what decides the figures, as it stands in JSON."""
        training = choose_training(data).to_record()
        return {
            "attack": self.attack,
            "images": self.images,
            "training": training,
            "steps": self.steps,
            "audit_version": AUDIT_VERSION,
            "standard_version": STANDARD_VERSION,
        }


@dataclass(frozen=True)
class ValidatedPolicy:
    """One policy: its scores, what the attacker gained over chance in dB, and the accuracy after the training."""

    policy: str
    privacy_score: float
    accuracy_score: float
    advantage: Interval | None
    finding: str
    test_accuracy: float

    def to_record(self) -> dict[str, Any]:
        """Return the figures as they stand in JSON."""
        advantage = self.advantage
        return {
            "policy": self.policy,
            "privacy": self.privacy_score,
            "accuracy": self.accuracy_score,
            "advantage": None if advantage is None else advantage.mean,
            "advantage_low": None if advantage is None else advantage.low,
            "advantage_high": None if advantage is None else advantage.high,
            "images": 0 if advantage is None else advantage.count,
            "finding": self.finding,
            "test_accuracy": self.test_accuracy,
        }


def validate(
    scores: ScoreJournal,
    model: str,
    ranked: Sequence[ScoredCandidate],
    data: DataSet,
    validation: Validation,
    progress: OnProgress,
) -> list[ValidatedPolicy]:
    """Attack and train with the best policies and, as their control, with the base augmentation alone.

    `data` must be without the images that were scored. What the journal holds is not done again.
    """
    best = [candidate.policy for candidate in ranked[: validation.best]]
    policies = [CONTROL, *best] if best else []
    wanted = validation.to_record(data)
    validated = []
    for number, policy in enumerate(policies, 1):
        line = find_line(scores.records.validations, policy, wanted)
        if line is None:
            line = {"validation": wanted, "policy": policy}
            line |= try_policy(scores, model, policy, data, validation, progress)
            scores.write(line)
        validated.append(read_line(scores, line))
        progress("validating", number, len(policies))
    return validated


def choose_training(data: DataSet) -> TrainingSettings:
    """Train on about as many images as the bundled sample has, whatever the data."""
    return replace(BRIEF, fraction=min(1.0, TRAINING_IMAGES / len(data.train)))


def find_line(lines: Sequence[Line], policy: str, wanted: dict[str, Any]) -> Line | None:
    """Find what the journal holds of a policy under the same attack and training."""
    matching = (line for line in lines if line["policy"] == policy and line["validation"] == wanted)
    return next(matching, None)


def try_policy(
    scores: ScoreJournal, model: str, policy: str, data: DataSet, validation: Validation, progress: OnProgress
) -> dict[str, Any]:
    """Audit one arm after a brief training under it; the attacker is told the policy, though never its draws."""
    arm = "crop-flip" if policy == CONTROL else f"policy:{policy}"
    settings = AuditSettings(
        data=scores.settings.data,
        model=model,
        arms=(arm,),
        phases=("final",),
        attacks=(validation.attack,),
        images=validation.images,
        knows_defence=True,
        steps=validation.steps,
        training=choose_training(data),
        group=GROUP,
        seed=scores.settings.seed,
    )
    report = run_audit(
        settings,
        data,
        workers=validation.workers,
        device=scores.settings.device,
        progress=lambda stage, share: progress(f"{policy}: {stage}", round(100 * share), 100),
    )
    summary = report.summaries[0]
    gained = summary.advantage
    return {
        "advantage": None if gained is None else [gained.mean, gained.low, gained.high, gained.std, gained.count],
        "finding": WORDS[summary.outcome],
        "test_accuracy": report.accuracies[arm],
    }


def read_line(scores: ScoreJournal, line: Line) -> ValidatedPolicy:
    """Put the scores of a policy beside what was measured."""
    policy = line["policy"]
    key = str(simplify(parse_policy(policy)))
    values = scores.privacy_scores([key], range(scores.images), scores.settings.rule, f"S_pri of {policy}")
    (accuracy_score,) = scores.accuracy_scores([key])
    advantage = None if line["advantage"] is None else Interval(*line["advantage"])
    return ValidatedPolicy(
        policy, float(values.mean()), accuracy_score, advantage, line["finding"], line["test_accuracy"]
    )
