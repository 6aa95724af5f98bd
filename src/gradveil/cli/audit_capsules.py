"""`gradveil audit --capsule`: attack captured rounds."""

import math
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradveil.audit import AuditReport, AuditSettings, load_capsules
from gradveil.cli.arms import NamedObjects
from gradveil.data import DataSet
from gradveil.reports import Visible, draw_grid, pictures_of, record_of, to_png, write_audit
from gradveil.results import PRIVATE, record, to_json, write_file
from gradveil.types import Reconstruction

OnProgress = Callable[[str, float], None]


def audit_capsules(
    capsules: list[Path],
    truths: list[Path] | None,
    settings: AuditSettings,
    data: DataSet,
    named: NamedObjects,
    model: str | None,
    folder: Path,
    device: str,
    progress: OnProgress,
    together: bool,
    shown: Visible,
) -> tuple[AuditReport | None, dict[str, Any]]:
    """Attack captured rounds; without their truth there is no report, only pictures."""
    captured = load_capsules(
        capsules,
        data,
        named.attacks,
        truths=truths,
        steps=settings.steps,
        model=model if model is not None and ":" in model else None,
        seed=settings.seed,
        together=together,
        own=named.by_their_words(),
    )
    captured = replace(captured, rule=settings.rule)
    if len(captured.truths) < len(captured.rounds):
        return None, write_unscored(folder, captured.attack(device, progress))
    report = captured.run(device, progress)
    line = shlex.join(["gradveil", *sys.argv[1:]])
    return report, write_audit(folder, record_of(report, line), pictures_of(report), shown)


def write_unscored(folder: Path, results: Mapping[str, Mapping[str, Reconstruction]]) -> dict[str, Any]:
    """Write what was rebuilt of capsules without their truth: pictures and losses; nothing can be scored."""
    entries = []
    for attack, capsules in results.items():
        for capsule, one in capsules.items():
            if one.status == "ok":
                pictures = [(attack, list(one.images.cpu()))]
                write_file(folder / f"{capsule}-{attack}.png", to_png(draw_grid(pictures)), PRIVATE)
            loss = one.matching_loss if math.isfinite(one.matching_loss) else None
            entries.append(
                {
                    "capsule": capsule,
                    "attack": attack,
                    "status": one.status,
                    "reason": one.reason,
                    "matching_loss": loss,
                    "labels": one.labels.tolist(),
                }
            )
    result = record("audit", {}, {"capsules": entries})
    write_file(folder / "audit.json", to_json(result))
    return result
