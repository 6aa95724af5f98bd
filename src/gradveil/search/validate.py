"""The best policies, really attacked and really trained with: a score is only a proxy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradveil.audit import AuditSettings, run_audit
from gradveil.data import DataSet
from gradveil.metrics import Interval
from gradveil.scores import simplify
from gradveil.search.records import Line
from gradveil.search.study import OnProgress, Study
from gradveil.training import BRIEF, TrainingSettings
from gradveil.transforms import parse_policy

ATTACK = "standard"
IMAGES = 4
TRAINING_IMAGES = 5000
CONTROL = "none"
GROUP = 2


@dataclass(frozen=True)
class Validation:
    """How the best policies are tried: few images, a strong attack, a brief training.

    `steps`, if given, replaces the attack's own number, where it is a single attack.
    """

    attack: str
    images: int
    training: TrainingSettings
    steps: int | None = None

    def to_record(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "images": self.images,
            "training": self.training.to_record(),
            "steps": self.steps,
        }


@dataclass(frozen=True)
class Validated:
    """One policy: its scores, what the attacker gained over chance in dB, and the accuracy after the training."""

    policy: str
    privacy: float
    accuracy_score: float
    advantage: Interval | None
    finding: str
    test_accuracy: float

    def to_record(self) -> dict[str, Any]:
        """Give the figures as they stand in JSON."""
        advantage = self.advantage
        return {
            "policy": self.policy,
            "privacy": self.privacy,
            "accuracy": self.accuracy_score,
            "advantage": None if advantage is None else advantage.mean,
            "advantage_low": None if advantage is None else advantage.low,
            "advantage_high": None if advantage is None else advantage.high,
            "images": 0 if advantage is None else advantage.count,
            "finding": self.finding,
            "test_accuracy": self.test_accuracy,
        }


def plan_validation(data: DataSet, attack: str = ATTACK, images: int = IMAGES, steps: int | None = None) -> Validation:
    """Train on about as many images as the bundled sample has, whatever the data."""
    training = replace(BRIEF, fraction=min(1.0, TRAINING_IMAGES / len(data.train)))
    return Validation(attack, images, training, steps)


def validate(
    study: Study,
    model: str,
    policies: Sequence[str],
    data: DataSet,
    plan: Validation,
    workers: int,
    progress: OnProgress,
) -> list[Validated]:
    """Attack and train with each policy and, as their control, with the base augmentation alone.

    `data` must be without the images that were scored. What the journal holds is not done again.
    """
    found = []
    for number, policy in enumerate([CONTROL, *policies], 1):
        line = find_line(study, policy, plan) or try_policy(study, model, policy, data, plan, workers, progress)
        found.append(read_line(study, policy, line))
        progress("validating", number, len(policies) + 1)
    return found


def find_line(study: Study, policy: str, plan: Validation) -> Line | None:
    wanted = plan.to_record()
    for line in study.records.validations:
        if line["policy"] == policy and line["validation"] == wanted:
            return line
    return None


def try_policy(
    study: Study, model: str, policy: str, data: DataSet, plan: Validation, workers: int, progress: OnProgress
) -> Line:
    """Audit one arm after a brief training under it; the attacker is told the policy, though never its draws."""
    arm = "crop-flip" if policy == CONTROL else f"policy:{policy}"
    settings = AuditSettings(
        data=study.settings.data,
        model=model,
        arms=(arm,),
        phases=("final",),
        attacks=(plan.attack,),
        images=plan.images,
        knows_defence=True,
        steps=plan.steps,
        training=plan.training,
        floor_images=min(2000, len(data.train)),
        group=GROUP,
        seed=study.settings.seed,
    )
    report = run_audit(
        settings,
        data,
        workers=workers,
        device=study.settings.device,
        progress=lambda stage, share: progress(f"{policy}: {stage}", round(100 * share), 100),
    )
    summary = report.summaries[0]
    gained = summary.advantage
    line = {
        "validation": plan.to_record(),
        "policy": policy,
        "advantage": None if gained is None else [gained.mean, gained.low, gained.high, gained.std, gained.count],
        "finding": summary.finding,
        "test_accuracy": report.accuracies[arm],
    }
    study.write(line)
    return line


def read_line(study: Study, policy: str, line: Line) -> Validated:
    """Put the scores of a policy beside what was measured."""
    key = str(simplify(parse_policy(policy)))
    values = study.privacy([key], range(study.images), study.settings.rule, f"S_pri of {policy}")
    (fitness,) = study.accuracy([key])
    advantage = None if line["advantage"] is None else Interval(*line["advantage"])
    return Validated(policy, float(values.mean()), fitness, advantage, line["finding"], line["test_accuracy"])
