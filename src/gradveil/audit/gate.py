"""The gate: does an audit show a leak above a number of decibels?"""

from dataclasses import dataclass

from gradveil.audit.report import AuditReport
from gradveil.audit.rule import WORDS
from gradveil.audit.summary import Summary
from gradveil.audit.verdict import UNDEFENDED
from gradveil.errors import SettingsError


@dataclass(frozen=True)
class Leak:
    """An arm, phase and attack that leaks, the figure by which it does in dB, and which figure that is."""

    summary: Summary
    decibels: float
    figure: str

    def __str__(self) -> str:
        one = self.summary
        return f"{one.arm}, {one.phase}, {one.attack}: {WORDS[one.outcome]}, {self.figure} {self.decibels:+.1f} dB"


def find_leaks(report: AuditReport, above: float) -> list[Leak]:
    """List what leaks more than `above` dB beyond chance, the worst first.

    An arm, phase and attack is listed if its outcome is `leaks` or `some`, and the larger of its mean advantages (at
    T(x) and at x) or the advantage of one of its `hits`, the images that pass the corrected test, lies above. An arm
    `none` that is there as a control only is never listed.
    """
    if not above >= 0:
        raise SettingsError(f"a leak above {above} dB: give a number of decibels from 0")
    leaks = []
    for summary, cell in zip(report.summaries, report.verdict.cells, strict=True):
        if summary.outcome not in ("leaks", "some") or (report.settings.control and summary.arm == UNDEFENDED):
            continue
        hits = set(summary.hits)
        found = [(row.advantage or 0.0, f"image #{row.image}") for row in cell.rows if row.image in hits]
        if summary.advantage is not None:
            found.append((summary.advantage.mean, "mean advantage"))
        decibels, figure = max(found)
        if decibels > above:
            leaks.append(Leak(summary, decibels, figure))
    return sorted(leaks, key=lambda leak: -leak.decibels)
