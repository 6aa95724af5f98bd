"""How figures are written: ours beside the published ones."""

from collections.abc import Mapping

from gradveil.experiments.paper.cells import Cell
from gradveil.experiments.paper.published import P, R, Value
from gradveil.metrics import ClusterInterval, rate_interval

NOT_RUN, NO_CONTROL = "not run", "no control"
EXCESS = "over wrong updates, dB"
ABOUT_EXCESS = (
    "Over wrong updates: the aligned score less that from the updates of other images of the class; on average 0 "
    "without a leak."
)
"""What the column of the negative control says."""


def write_value(values: Mapping[str, Value], paper: str) -> str:
    """Write what a paper has; a dash if it has nothing."""
    return values[paper].text() if paper in values else "–"


def write_published(values: Mapping[str, Value]) -> list[str]:
    return [write_value(values, P), write_value(values, R)]


def write_count(cell: Cell) -> str:
    """Write how many images a cell has, of how many, and how many attacks failed."""
    part = "" if cell.count + cell.failed == cell.wanted else f" of {cell.wanted}"
    return f"{cell.count}{part}" + (f" ({cell.failed} failed)" if cell.failed else "")


def write_psnr(cell: Cell) -> str:
    """Write PSNR as the papers do: the mean and, of six images or more, the standard deviation."""
    mean, spread = cell.mean("psnr_transformed"), cell.spread("psnr_transformed")
    if mean is None:
        return NOT_RUN
    return f"{mean:.2f}" + ("" if spread is None else f" ± {spread:.2f}")


def write_mean(cell: Cell, name: str, digits: int = 2) -> str:
    mean = cell.mean(name)
    return NOT_RUN if mean is None else f"{mean:.{digits}f}"


def write_interval(interval: ClusterInterval | None, digits: int = 1) -> str:
    """Write a signed mean with half its interval."""
    return NOT_RUN if interval is None else interval.text(digits, signed=True)


def write_share(cell: Cell, name: str) -> str:
    """Write how often an image was picked out of its crowd, with the exact interval and chance in brackets."""
    found, count = cell.share(name)
    if count == 0:
        return NOT_RUN if cell.count == 0 else NO_CONTROL
    low, high = rate_interval(found, count)
    return f"{found} of {count} ({100 * low:.0f}–{100 * high:.0f}%, chance {100 * cell.chance():.0f}%)"


def write_excess(cell: Cell) -> str:
    """Write what an attack finds beyond what wrong updates give."""
    found = cell.interval("excess")
    return NO_CONTROL if found is None and cell.count else write_interval(found)


def write_percent(value: float | None) -> str:
    return NOT_RUN if value is None else f"{value:.1f}"
