"""What an audit comes back with."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from gradveil.attacks import STANDARD_VERSION
from gradveil.audit.arm_notes import ArmNotes
from gradveil.audit.jobs import Attacked
from gradveil.audit.scoring import Row
from gradveil.audit.settings import AuditSettings
from gradveil.audit.summary import Pooled, Summary, headline

AUDIT_VERSION = 2
"""Raised whenever the same settings give other figures: results of different versions are not to be compared."""
VERSIONS = {
    1: "the attacked gradient was that of plain cross-entropy, whatever loss the model was trained with",
    2: "the attacked update is that of the training's own loss",
}


@dataclass(frozen=True, eq=False)
class Picture:
    """What stands side by side in the report, float C×H×W; `rebuilt` is None where the attack has no result."""

    original: Tensor
    transformed: Tensor
    rebuilt: Tensor | None


@dataclass(frozen=True, eq=False)
class AuditReport:
    """The rows with all that is needed to read them; `attacked` has the reconstruction behind each row."""

    settings: AuditSettings
    rows: tuple[Row, ...]
    summaries: tuple[Summary, ...]
    floors: dict[str, dict[str, str]]
    accuracies: dict[str, float]
    training_seconds: dict[str, float]
    arms: dict[str, ArmNotes]
    pooled: tuple[Pooled, ...]
    class_names: tuple[str, ...]
    needs: dict[str, tuple[str, ...]]
    parameters: int
    notices: tuple[str, ...]
    attacked: tuple[Attacked, ...]

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Return the pictures of every row."""
        return tuple(show(one) for one in self.attacked)

    def to_figures(self) -> dict[str, Any]:
        """Return what `audit.json` holds besides settings and environment."""
        return {
            "verdict": headline(self.summaries),
            "summaries": [summary.to_record() for summary in self.summaries],
            "floors": self.floors,
            "test_accuracy": self.accuracies,
            "arms": {name: notes.to_record() for name, notes in self.arms.items()},
            "random_policies": [entry.to_record() for entry in self.pooled],
            "model_parameters": self.parameters,
            "notices": list(self.notices),
            "audit_version": AUDIT_VERSION,
            "standard_version": STANDARD_VERSION,
            "attacker_needs": {name: list(needs) for name, needs in self.needs.items()},
            "rows": [row.to_record() for row in self.rows],
        }


def show(attacked: Attacked) -> Picture:
    """Put the pictures of one row side by side."""
    truth, result = attacked.truth, attacked.reconstruction
    rebuilt = result.images[0].cpu() if result.status == "ok" else None
    return Picture(truth.original[0], truth.transformed[0], rebuilt)
