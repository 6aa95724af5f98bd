"""The audit as one page for people: it draws the record and the pictures, it computes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jinja2 import UndefinedError

from gradveil.errors import DataError
from gradveil.reports.audit_annex import make_annex
from gradveil.reports.audit_charts import TARGETS, make_rate, make_scatter, make_strips
from gradveil.reports.audit_gallery import Visible, make_gallery
from gradveil.reports.audit_pictures import Pictures
from gradveil.reports.audit_record import Cell, Record, check_record, make_cells, severity
from gradveil.reports.audit_table import make_table
from gradveil.reports.audit_words import (
    DECLARATION,
    KINDS,
    OUTCOME_WORDS,
    RESERVATIONS,
    TRUST,
    describe_arm,
    name_cell,
    say_cost,
    say_decibels,
    say_false_findings,
    say_identification,
    say_interval,
    signed,
    worst_cell,
)
from gradveil.reports.sealed_page import render_page
from gradveil.results import SEAL, seal


def render_audit(record: Record, pictures: Pictures | None, show: Visible = "all") -> str:
    """Render the page of a record with all pictures, with rebuilt ones only, or with none.

    Where an attack works, a rebuilt picture shows what the original shows.
    """
    check_record(record)
    with refusing_gaps("the record"):
        return draw(record, pictures, show)


@contextmanager
def refusing_gaps(source: str) -> Iterator[None]:
    """Turn what goes wrong over a value that is missing or of another kind into one clear error."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, UndefinedError) as error:
        raise DataError(
            f"{source} cannot be drawn, a value in it is missing or wrong ({error!r}): copy it again"
        ) from error


def draw(record: Record, pictures: Pictures | None, show: Visible) -> str:
    cells = make_cells(record)
    attacks = len({cell.attack for cell in cells})
    drawn = pictures is not None and show != "none" and len(pictures) > 0
    gallery = make_gallery(cells, pictures, show == "all") if pictures is not None and drawn else None
    context = {
        "record": record,
        "settings": record["settings"],
        "seal": record.get(SEAL) or seal(record)[SEAL],
        "cells": cells,
        "attacks": attacks,
        "names": [name_cell(cell, attacks) for cell in cells],
        "lead": worst_cell(cells),
        "overview": make_overview(cells),
        "rates": [make_rate(cell.summary.get("identification")) for cell in cells],
        "own_rates": [make_rate(cell.summary.get("identification_original")) for cell in cells],
        "strips": make_strips(cells),
        "scatter": make_scatter(cells),
        "gallery": gallery,
        "had_pictures": pictures is not None,
        "originals": show == "all",
        "arms": make_arms(record),
        "annex": make_annex(record),
        "table": make_table(record),
        "false_findings": say_false_findings(record.get("expected_false_findings")),
        **WORDS,
    }
    return render_page("audit.html", [context["seal"]], context)


WORDS: Mapping[str, Any] = {
    "outcomes": OUTCOME_WORDS,
    "kinds": KINDS,
    "targets": TARGETS,
    "declaration": DECLARATION,
    "trust": TRUST,
    "reservations": RESERVATIONS,
    "say_identification": say_identification,
    "say_interval": say_interval,
    "say_cost": say_cost,
    "say_decibels": say_decibels,
    "signed": signed,
}


def make_overview(cells: Sequence[Cell]) -> dict[str, Any]:
    """Lay the cells out as arms by phases; several attacks in one place stand there with the worst first."""
    phases = list(dict.fromkeys(cell.phase for cell in cells))
    places: dict[str, dict[str, list[Cell]]] = {}
    for cell in cells:
        places.setdefault(cell.arm, {phase: [] for phase in phases})[cell.phase].append(cell)
    for line in places.values():
        for group in line.values():
            group.sort(key=lambda cell: severity(cell.outcome))
    return {"phases": phases, "lines": places}


def make_arms(record: Record) -> list[dict[str, Any]]:
    """Describe every arm with its accuracy at the end of training."""
    told = bool(record["settings"].get("knows_defence"))
    accuracies = record.get("test_accuracy") or {}
    return [describe_arm(name, notes, told, accuracies.get(name)) for name, notes in record["arms"].items()]
