"""A search as a page: how far it is, who leads, and the front of both scores. It needs no other file and no script."""

from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gradveil.metrics import Interval, pareto_front
from gradveil.reports.sealed_page import read_part, write_policy
from gradveil.scores import find_score
from gradveil.search import SearchStatus, Standing
from gradveil.transforms import parse_policy

WIDTH, HEIGHT, MARGIN = 720, 360, 52
REFRESH_SECONDS = 5
LOWEST_SHARE = 0.05
"""The share of the lowest S_acc that the chart may cut off: policies that make all images alike score in thousands."""


def render_search_page(status: SearchStatus) -> str:
    """Render the page; while the search runs it asks to be loaded again every few seconds."""
    environment = Environment(
        loader=PackageLoader("gradveil.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    style = read_part("search.css")
    return environment.get_template("search.html").render(
        style=Markup(style),
        policy=write_policy(style),
        status=status,
        label=find_score(status.settings.score).label,
        settings=status.settings.to_record(),
        leaders=[{"readable": parse_policy(one.policy).readable, "standing": one} for one in status.leaders],
        chart=make_chart(status.standings, status.leaders),
        validations=[
            line | {"gained": "–" if line["advantage"] is None else Interval(*line["advantage"]).text(signed=True)}
            for line in status.validations
        ],
        refresh=None if status.finished else REFRESH_SECONDS,
    )


def make_chart(standings: Sequence[Standing], leaders: Sequence[Standing]) -> dict[str, Any] | None:
    """Place every policy with both scores, S_pri to the right and S_acc upwards; None while there is none."""
    both = [(one, one.accuracy_score) for one in standings if one.accuracy_score is not None]
    if not both:
        return None
    privacy = [one.privacy for one, _ in both]
    accuracy = sorted(value for _, value in both)
    lowest = accuracy[int(LOWEST_SHARE * len(accuracy))]
    across, up = Axis(min(privacy), max(privacy), MARGIN, WIDTH - 12), Axis(lowest, accuracy[-1], HEIGHT - MARGIN, 12)
    named = {one.policy for one in leaders}
    shown = [(one, value) for one, value in both if value >= lowest]
    front = pareto_front(shown, cost=lambda point: point[0].privacy, value=lambda point: point[1])
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "margin": MARGIN,
        "dots": [
            {
                "x": across.place(one.privacy),
                "y": up.place(value),
                "policy": one.policy,
                "exact": one.exact,
                "leads": one.policy in named,
            }
            for one, value in shown
        ],
        "front": " ".join(f"{across.place(one.privacy)},{up.place(value)}" for one, value in front),
        "columns": [(f"{value:.3g}", across.place(value)) for value in across.ticks()],
        "rows": [(f"{value:.4g}", up.place(value)) for value in up.ticks()],
        "hidden": len(both) - len(shown),
    }


class Axis:
    """Values from `low` to `high` on pixels from `first` to `last`."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        room = (high - low) * 0.05 or 0.05
        self.low, self.high, self.first, self.last = low - room, high + room, first, last

    def place(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.first + share * (self.last - self.first), 1)

    def ticks(self, count: int = 5) -> list[float]:
        return [self.low + (self.high - self.low) * (number + 0.5) / count for number in range(count)]
