"""From an audit's report to its record and pictures, and to one page."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradveil.audit import Attacked, AuditReport
from gradveil.reports.audit_page import render_audit
from gradveil.reports.audit_pictures import Frames, Pictures, hash_pictures
from gradveil.results import PRIVATE, record, seal, write_file

PICTURES_HASH = "pictures_sha256"


def record_of(report: AuditReport, command_line: str | None = None) -> dict[str, Any]:
    """Make the record of an audit, as `audit.json` holds it before it is sealed."""
    return record("audit", report.settings.to_record(), {"command_line": command_line, **report.to_figures()})


def pictures_of(report: AuditReport) -> Pictures:
    """Collect the pictures of every row, and the way to some of them."""
    attacked = report.attacked
    told_apart = any(one.reconstruction.transformed is not None for one in attacked)
    return Pictures(
        torch.cat([one.truth.original for one in attacked]),
        torch.cat([one.truth.transformed for one in attacked]),
        torch.cat([shown(one, fed_of(one)) for one in attacked]),
        torch.cat([shown(one, one.reconstruction.images) for one in attacked]) if told_apart else None,
        {place: frames_of(one) for place, one in enumerate(attacked) if one.reconstruction.pictures},
    )


def fed_of(one: Attacked) -> Tensor:
    """Return what the attacker takes for T(x)."""
    result = one.reconstruction
    return result.images if result.transformed is None else result.transformed


def shown(one: Attacked, guess: Tensor) -> Tensor:
    """Return the first guess, or zeros where the attack has no result."""
    truth = one.truth.original
    return guess[:1].detach().cpu().float() if one.reconstruction.status == "ok" else torch.zeros_like(truth)


def frames_of(one: Attacked) -> Frames:
    steps, pictures = zip(*one.reconstruction.pictures, strict=True)
    return Frames(tuple(steps), torch.cat([picture[:1].detach().cpu().float() for picture in pictures]))


def render_report(report: AuditReport) -> str:
    """Render the page of a report that was never written to a folder."""
    pictures = pictures_of(report)
    return render_audit(seal({**record_of(report), PICTURES_HASH: hash_pictures(pictures)}), pictures)


def save_page(report: AuditReport, path: Path) -> None:
    """Write the page of a report; it shows private images, so only its owner can read it."""
    write_file(path, render_report(report), PRIVATE)
