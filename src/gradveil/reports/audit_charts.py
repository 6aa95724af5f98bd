"""The audit's charts as places in percent: strips of single images, identification rates, accuracy against leak."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.reports.audit_record import Cell, Record, leak_of
from gradveil.reports.audit_words import signed
from gradveil.reports.chart_axis import Axis, Span

DOTS = 240
"""The most dots on one strip; of more images an even spread over the ranks is drawn, and those that stand out."""
REACH = 0.5
"""How far beyond the images an interval may stretch the axis, as a share of their span; longer ones get a mark."""
TARGETS = {"transformed": "the picture that the model was fed", "original": "the original"}
GOLDEN = 0.618034


@dataclass(frozen=True)
class Bar:
    """The mean advantage against one target with its interval."""

    target: str
    mean: float
    span: Span | None
    figure: Record


@dataclass(frozen=True)
class Strip:
    """One cell of a strip chart; a dot is its place across, its height in pixels, its kind and its words."""

    dots: Sequence[tuple[float, float, str, str]]
    hidden: int
    band: Span | None
    median: float | None
    threshold: float | None
    bars: Sequence[Bar]


@dataclass(frozen=True)
class StripChart:
    """Strips on one axis in dB, by the number of their cell."""

    ticks: Sequence[tuple[float, float]]
    zero: float
    strips: Mapping[int, Strip]

    @property
    def hidden(self) -> int:
        """The number of images without a dot."""
        return sum(strip.hidden for strip in self.strips.values())

    @property
    def cut(self) -> bool:
        """Tell whether any interval goes on beyond the axis."""
        spans = [bar.span for strip in self.strips.values() for bar in strip.bars if bar.span]
        return any(span.cut_low or span.cut_high for span in spans)


def make_strips(cells: Sequence[Cell]) -> StripChart:
    """Place every image, the control's band, the threshold and the means of all cells on one axis."""
    axis = make_axis(cells)
    return StripChart(
        axis.ticks(), axis.place(0.0), {place: make_strip(cell, axis) for place, cell in enumerate(cells)}
    )


def make_axis(cells: Sequence[Cell]) -> Axis:
    """Cover all images, bands and thresholds; intervals only as far as `REACH` allows."""
    values = [0.0, 1.0]
    ends: list[float] = []
    for cell in cells:
        band, threshold = cell.summary.get("null"), cell.summary.get("threshold")
        values += [leak for leak in map(leak_of, cell.rows) if leak is not None]
        values += [] if threshold is None else [threshold]
        values += [] if band is None else [band[key] for key in ("low", "high") if band.get(key) is not None]
        figures = [cell.summary["figures"].get(f"advantage_{target}") for target in TARGETS]
        values += [figure["mean"] for figure in figures if figure]
        ends += [figure[key] for figure in figures if figure for key in ("low", "high") if figure.get(key) is not None]
    low, high = min(values), max(values)
    room = REACH * (high - low)
    return Axis.around([*values, *(min(high + room, max(low - room, end)) for end in ends)])


def make_strip(cell: Cell, axis: Axis) -> Strip:
    sound = [(leak, row) for row in cell.rows if (leak := leak_of(row)) is not None]
    shown = thin(sorted(sound, key=lambda pair: pair[0]))
    dots = [
        (
            axis.place(leak),
            round(8 + 20 * (number * GOLDEN % 1), 1),
            kind_of(row),
            f"image {row['image']}: {signed(leak)} dB",
        )
        for number, (leak, row) in enumerate(shown)
    ]
    band, threshold = cell.summary.get("null"), cell.summary.get("threshold")
    return Strip(
        dots,
        len(sound) - len(shown),
        None if band is None else axis.span(band.get("low"), band.get("high")),
        None if band is None or band.get("median") is None else axis.place(band["median"]),
        None if threshold is None else axis.place(threshold),
        [bar for target in TARGETS if (bar := make_bar(cell, target, axis)) is not None],
    )


def kind_of(row: Record) -> str:
    if row.get("hit"):
        return "hit"
    return "reached" if row.get("reached") else "plain"


def thin(pairs: Sequence[tuple[float, Record]]) -> list[tuple[float, Record]]:
    """Keep an even spread of sorted pairs with both ends, and every image that stands out."""
    if len(pairs) <= DOTS:
        return list(pairs)
    kept = {round(number * (len(pairs) - 1) / (DOTS - 1)) for number in range(DOTS)}
    standing = [place for place, (_, row) in enumerate(pairs) if row.get("hit")]
    return [pairs[place] for place in sorted(kept | set(standing[-DOTS:]))]


def make_bar(cell: Cell, target: str, axis: Axis) -> Bar | None:
    figure = cell.summary["figures"].get(f"advantage_{target}")
    if not figure:
        return None
    return Bar(target, axis.place(figure["mean"]), axis.span(figure.get("low"), figure.get("high")), figure)


RATES = Axis(0.0, 1.0)


def make_rate(identification: Record | None) -> dict[str, Any] | None:
    """Place an identification rate, its interval and its chance level on 0 to 100%."""
    if not identification or not identification["images"]:
        return None
    return {
        "rate": RATES.place(identification["found"] / identification["images"]),
        "span": RATES.span(identification.get("low"), identification.get("high")),
        "chance": RATES.place(1 / identification["candidates"]),
    }


def make_scatter(cells: Sequence[Cell]) -> dict[str, Any] | None:
    """Place the cells whose accuracy is known: leak across, accuracy upwards; None if there is none."""
    known = [(cell, figure) for cell in cells if cell.summary.get("accuracy") is not None and (figure := larger(cell))]
    if not known:
        return None
    across = Axis.around([0.0, *(figure["mean"] for _, figure in known)], 0.12)
    up = Axis.around([cell.summary["accuracy"] for cell, _ in known], 0.2)
    points: list[dict[str, Any]] = []
    for number, (cell, figure) in enumerate(known, start=1):
        place = across.place(figure["mean"]), round(100 - up.place(cell.summary["accuracy"]), 2)
        points.append(
            {
                "number": number,
                "cell": cell,
                "figure": figure,
                "x": place[0],
                "y": place[1],
                "span": across.span(figure.get("low"), figure.get("high")),
                "shift": shift_label(sum(near(place, (other["x"], other["y"])) for other in points)),
            }
        )
    rows = [(value, round(100 - place, 2)) for value, place in up.ticks(5) if 0 <= value <= 1]
    return {"points": points, "columns": across.ticks(), "rows": rows, "zero": across.place(0.0)}


def shift_label(others: int) -> tuple[int, int]:
    """Move a point's number away from those of others nearby: above and below in turn, then further to the right."""
    return 6 + 14 * (others // 2), 17 if others % 2 else -7


def near(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Tell whether two labels would lie on each other."""
    return abs(one[0] - other[0]) < 5 and abs(one[1] - other[1]) < 6


def larger(cell: Cell) -> Record | None:
    """Return the larger mean advantage of a cell."""
    figures = [figure for target in TARGETS if (figure := cell.summary["figures"].get(f"advantage_{target}"))]
    return max(figures, key=lambda figure: float(figure["mean"])) if figures else None
