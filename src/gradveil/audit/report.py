"""What an audit comes back with."""

import html
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor

from gradveil.attacks import STANDARD_VERSION
from gradveil.audit.arm_notes import ArmNotes
from gradveil.audit.canaries import CanaryReading, chance_of_reading
from gradveil.audit.jobs import Attacked
from gradveil.audit.scoring import Row
from gradveil.audit.settings import AuditSettings
from gradveil.audit.summary import Pooled, Summary, pool_random_policies
from gradveil.audit.verdict import Verdict, headline

AUDIT_VERSION = 3
"""Raised whenever the same settings give other figures: results of different versions are not to be compared."""
VERSIONS = {
    1: "the attacked gradient was that of plain cross-entropy, whatever loss the model was trained with",
    2: "the attacked update is that of the training's own loss",
    3: "one aligned score for T(x) and x; floors judged on other images; wrong-gradient control; sequential verdict",
}
"""What sets each version of the audit apart."""


@dataclass(frozen=True, eq=False)
class Picture:
    """What stands side by side in the report, float C×H×W; `rebuilt` is None where the attack has no result."""

    original: Tensor
    transformed: Tensor
    rebuilt: Tensor | None


@dataclass(frozen=True, eq=False)
class AuditReport:
    """The verdict with all that is needed to read it; `attacked` has the reconstruction behind each row."""

    settings: AuditSettings
    verdict: Verdict
    floors: dict[str, dict[str, str]]
    accuracies: dict[str, float]
    training_seconds: dict[str, float]
    arms: dict[str, ArmNotes]
    class_names: tuple[str, ...]
    needs: dict[str, tuple[str, ...]]
    parameters: int
    notices: tuple[str, ...]
    attacked: tuple[Attacked, ...]
    canaries: tuple[CanaryReading, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """One row for each image, arm, phase and attack, in the order of `attacked`."""
        return tuple(row for cell in self.verdict.cells for row in cell.rows)

    @property
    def summaries(self) -> tuple[Summary, ...]:
        return self.verdict.summaries

    @property
    def pooled(self) -> tuple[Pooled, ...]:
        return pool_random_policies(self.summaries)

    @property
    def canary_chance(self) -> float | None:
        """How often a card is read by chance, at most; None without cards."""
        return chance_of_reading(self.settings.images_per_round) if self.canaries else None

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Return the pictures of every row."""
        return tuple(show(one) for one in self.attacked)

    def save(self, path: str | Path) -> None:
        """Write the report as one page, `report.html` or the like."""
        drawing().save_page(self, Path(path))

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own: its style must not reach the notebook."""
        page = html.escape(drawing().render_report(self))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 48em; border: 0"></iframe>'

    def to_figures(self) -> dict[str, Any]:
        """Return what `audit.json` holds besides settings and environment."""
        return {
            "verdict": headline(self.summaries),
            "outcome": self.verdict.outcome,
            "expected_false_findings": self.verdict.expected_false_findings,
            "threat_model": describe_threat(self.settings),
            "kind": self.settings.kind,
            "canaries": [reading.to_record() for reading in self.canaries],
            "canary_chance": self.canary_chance,
            "summaries": [summary.to_record() for summary in self.summaries],
            "floors": self.floors,
            "test_accuracy": self.accuracies,
            "arms": {name: notes.to_record() for name, notes in self.arms.items()},
            "random_policies": [entry.to_record() for entry in self.pooled],
            "class_names": list(self.class_names),
            "model_parameters": self.parameters,
            "notices": list(self.notices),
            "audit_version": AUDIT_VERSION,
            "standard_version": STANDARD_VERSION,
            "attacker_needs": {name: list(needs) for name, needs in self.needs.items()},
            "rows": [{**row.to_record(), "kind": self.settings.kind} for row in self.rows],
        }


def drawing() -> Any:
    """Import the room that draws reports by its name: it stands below this one, and imports it."""
    return import_module("gradveil.reports")


def describe_threat(settings: AuditSettings) -> str:
    """Say in plain words who attacks what."""
    told = (
        "is told which defence is in use, not what it drew" if settings.knows_defence else "is not told of the defence"
    )
    labels = "is given the labels" if settings.labels == "known" else "has to find the labels"
    tail = (
        "This is a diagnostic: it grants the attacker more than a real training does."
        if settings.kind == "diagnostic"
        else "This is a client as it would be deployed."
    )
    return (
        f"An honest-but-curious receiver sees {settings.released}, exactly as released; it knows the model and the "
        f"loss, {told}, and {labels}. {tail}"
    )


def show(attacked: Attacked) -> Picture:
    """Put the pictures of one row side by side."""
    truth, result = attacked.truth, attacked.reconstruction
    rebuilt = result.images[0].cpu() if result.status == "ok" else None
    return Picture(truth.original[0], truth.transformed[0], rebuilt)
