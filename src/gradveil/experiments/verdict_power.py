"""The power of the verdict: attack many images of several arms once, then draw small audits from them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradveil.audit import Audit, AuditSettings, Cell, Kind, Rule, judge
from gradveil.data import DataSet
from gradveil.rng import generator
from gradveil.workers import Report

POOL = 40
COUNTS = (8, 16, 32)
DRAWS = 40
ARMS = ("none", "crop-flip", "policy:3-1-7+43-18-18", "gaussian:1e-2", "prune:99")
PHASES = ("init", "final")


@dataclass(frozen=True)
class PoolTrial:
    """The models of one seed, one for each arm, and images that are all attacked."""

    data: str
    seed: int
    images: int = POOL


def attack_pool(trial: PoolTrial, data: DataSet, model: str, steps: int | None, report: Report) -> dict[str, Any]:
    """Attack the pool with the full strength of `fast`, and draw audits of some of its images."""
    settings = AuditSettings(
        arms=ARMS, phases=PHASES, images=trial.images, steps=steps, stop_early=False, seed=trial.seed
    )
    audit = Audit(settings, data=data, model=model)
    audited = audit.run(progress=lambda _, share: report(round(100 * share), 100))
    cells = audited.verdict.cells
    return {
        "settings": audited.settings.to_record(),
        "test_accuracy": audited.accuracies,
        "cells": [describe(cell) for cell in cells],
        "draws": list(draw_audits(cells, settings.rule, settings.kind, trial.seed)),
    }


def describe(cell: Cell) -> dict[str, Any]:
    names = ("image", "status", "advantage_transformed", "advantage_original", "statistic", "limit", "reached")
    rows = [{name: row.to_record()[name] for name in names} for row in cell.rows]
    return {"arm": cell.arm, "phase": cell.phase, "rows": rows}


def draw_audits(cells: Sequence[Cell], rule: Rule, kind: Kind, seed: int) -> Iterator[dict[str, Any]]:
    """Draw images without replacement and judge them as an audit of just these; hits are not attacked again."""
    pool = len(cells[0].rows)
    for count in (count for count in COUNTS if count <= pool):
        for number in range(DRAWS):
            places = torch.randperm(pool, generator=generator(seed, "power", count, number))[:count].tolist()
            summaries = judge([take(cell, places) for cell in cells], rule, kind).summaries
            yield {
                "images": count,
                "outcomes": [one.outcome for one in summaries],
                "decided_after": [one.decided_after for one in summaries],
            }


def take(cell: Cell, places: Sequence[int]) -> Cell:
    """Keep some images of a cell with their own nulls alone; the verdict gives them their p-values."""
    pairs = list(cell.pairs())
    chosen = [pairs[place] for place in places]
    rows = tuple(replace(row, hit=False, confirmed=None) for row, _ in chosen)
    return replace(cell, rows=rows, null=tuple(score for _, null in chosen for score in null))
