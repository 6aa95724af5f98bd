"""What `gradveil audit` prints."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gradveil.audit import WORDS, AuditReport, Summary, describe_threat, headline
from gradveil.cli.options import print_path

FILES = ("report.html", "audit.json", "audit.csv")


def print_report(console: Console, report: AuditReport, folder: Path) -> None:
    """Print the table, then the sentences: the verdict, how far to trust it, and who attacks what."""
    console.print(make_table(report.summaries))
    for pooled in report.pooled:
        mean = pooled.advantage.text(signed=True)
        console.print(f"{pooled.phase}, {pooled.attack}: advantage {mean} dB over {pooled.policies} random policies")
    for arm, notes in report.arms.items():
        for line in notes.lines():
            console.print(f"{arm}: {line}", highlight=False, markup=False)
    for notice in report.notices:
        console.print(f"Notice: {notice}", highlight=False, markup=False)
    if report.canaries:
        print_canaries(console, report)
    console.print(headline(report.summaries), style="bold")
    expected = report.verdict.expected_false_findings
    console.print(f"Expected number of false findings in this audit: at most {expected:g}.", highlight=False)
    console.print(describe_threat(report.settings), highlight=False)
    for name in FILES:
        print_path(console, folder / name)


def print_canaries(console: Console, report: AuditReport) -> None:
    """Say for each arm, phase and attack how many cards were read."""
    cells: dict[tuple[str, str, str], list[bool]] = {}
    for one in report.canaries:
        cells.setdefault((one.arm, one.phase, one.attack), []).append(one.read)
    chance = report.canary_chance
    console.print(f"Canaries read (by chance {chance:.2%} of them would be):", highlight=False)
    for (arm, phase, attack), read in cells.items():
        console.print(f"  {arm}, {phase}, {attack}: {sum(read)} of {len(read)}", highlight=False, markup=False)


def make_table(summaries: Sequence[Summary]) -> Table:
    """Lay out one entry per arm, phase and attack; it fits 80 columns."""
    table = Table(
        caption="picked out: true image the nearest of N of its class; T(x), x: advantage over chance in dB, mean "
        "± 95%; T(x) is what the model was fed, x the original",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("arm, phase, attack", overflow="fold", max_width=24)
    table.add_column("picked out\nby x alone\nby chance", justify="right", no_wrap=True)
    for column in ("T(x)", "x", "worst", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("outcome", max_width=14)
    for summary in summaries:
        table.add_row(
            f"{summary.arm}\n{summary.phase}, {summary.attack}",
            say_rate(summary),
            *(say_advantage(summary, target) for target in ("transformed", "original")),
            "–" if summary.worst_advantage is None else f"#{summary.worst}\n{summary.worst_advantage:+.1f}",
            str(summary.images - summary.failed) + (f"\n{summary.failed} failed" if summary.failed else ""),
            WORDS[summary.outcome],
            end_section=True,
        )
    return table


def say_rate(summary: Summary) -> str:
    rate, own = summary.identification, summary.identification_original
    if rate is None or own is None:
        return "–"
    return f"{rate.found}/{rate.images}\n{own.found}/{own.images}\n1/{rate.candidates}"


def say_advantage(summary: Summary, target: str) -> str:
    return summary.figures[f"advantage_{target}"].text(signed=True) if summary.figures else "–"
