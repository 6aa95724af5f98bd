"""The audit as files that people look at: one HTML page, one CSV table, one picture grid per arm and phase."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from gradveil.audit import MARGIN, STRIKING, AuditReport, Picture, Row, Summary, explain, headline, leaked
from gradveil.metrics import Interval
from gradveil.reports.pictures import data_address, draw_grid, to_png

CHART_WIDTH = 720
LINE = 26


def render_audit_page(report: AuditReport, record: Mapping[str, Any]) -> str:
    """Render the page; `record` is what `audit.json` holds."""
    environment = Environment(
        loader=PackageLoader("gradveil.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"interval": format_interval, "decibel": format_decibel}
    cells = make_cells(report)
    return environment.get_template("audit.html").render(
        headline=headline(report.summaries),
        settings=report.settings,
        cells=cells,
        phases=report.settings.phases,
        chart=make_chart(cells),
        report=report,
        record=record,
        columns=[field.name for field in fields(Row)],
        margin=MARGIN,
        striking=STRIKING,
        undefended="none" in report.settings.arms,
    )


@dataclass(frozen=True, eq=False)
class Section:
    """One arm, phase and attack as the page shows it."""

    summary: Summary
    sentence: str
    rows: Sequence[Row]
    pictures: Sequence[dict[str, str | None]]

    @property
    def tone(self) -> str:
        """Choose the colour of the finding."""
        return {"leak": "bad", "leak on some images": "bad", "no leak found": "good"}.get(self.summary.finding, "open")


def make_cells(report: AuditReport) -> list[Section]:
    """Put each summary beside its rows and pictures."""
    controls = {(s.phase, s.attack): s for s in report.summaries if s.arm == "none"}
    pictures = report.pictures
    cells, start = [], 0
    for summary in report.summaries:
        part = slice(start, start + summary.images)
        start += summary.images
        cells.append(
            Section(
                summary,
                explain(summary, controls.get((summary.phase, summary.attack))),
                report.rows[part],
                [embed(picture) for picture in pictures[part]],
            )
        )
    return cells


def embed(picture: Picture) -> dict[str, str | None]:
    return {
        "original": data_address(picture.original),
        "transformed": data_address(picture.transformed),
        "rebuilt": None if picture.rebuilt is None else data_address(picture.rebuilt),
    }


def make_chart(cells: Sequence[Section]) -> dict[str, Any]:
    """Place every image's advantage, and the mean with its interval, on one axis in dB."""
    values = [leaked(row) for cell in cells for row in cell.rows if row.status == "ok"]
    low, high = min([0.0, *values]) - 1, max([MARGIN, *values]) + 1

    def place(value: float) -> float:
        return round(230 + (CHART_WIDTH - 240) * (value - low) / (high - low), 1)

    step = 5 if high - low > 12 else 2
    lines = []
    for index, cell in enumerate(cells):
        advantage = cell.summary.advantage
        lines.append(
            {
                "y": LINE * index + LINE // 2 + 4,
                "name": f"{cell.summary.phase} · {cell.summary.arm}",
                "tone": cell.tone,
                "dots": [place(leaked(row)) for row in cell.rows if row.status == "ok"],
                "mean": None if advantage is None else place(advantage.mean),
                "span": None
                if advantage is None or advantage.low is None or advantage.high is None
                else (max(230.0, place(advantage.low)), place(advantage.high)),
            }
        )
    ticks = [(value, place(value)) for value in range(int(low // step * step), int(high) + 1, step) if value >= low]
    return {"width": CHART_WIDTH, "height": LINE * len(cells) + 34, "lines": lines, "ticks": ticks, "zero": place(0)}


def format_interval(value: Interval | None, signed: bool = False) -> str:
    """Write a mean with the half-width of its interval."""
    return "–" if value is None else value.text(signed=signed)


def format_decibel(value: float | None, signed: bool = False) -> str:
    if value is None:
        return "–"
    return f"{value:+.1f}" if signed else f"{value:.1f}"


def render_csv(rows: Sequence[Row]) -> str:
    """Write one line per row."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [field.name for field in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.to_record() for row in rows)
    return buffer.getvalue()


def draw_pictures(report: AuditReport) -> dict[str, bytes]:
    """Draw one grid per arm, phase and attack: file name → PNG."""
    every = report.pictures
    files, start = {}, 0
    for summary in report.summaries:
        pictures = every[start : start + summary.images]
        start += summary.images
        name = re.sub(r"[^A-Za-z0-9+-]+", "_", f"{summary.phase} {summary.arm} {summary.attack}")
        grid = draw_grid(
            [
                ("original", [picture.original for picture in pictures]),
                ("transformed", [picture.transformed for picture in pictures]),
                ("rebuilt", [picture.rebuilt for picture in pictures]),
            ]
        )
        files[f"{name}.png"] = to_png(grid)
    return files
