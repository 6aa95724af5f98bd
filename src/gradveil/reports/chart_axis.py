"""An axis of a chart: values as places in percent of its length, so that a chart fits every width."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

STEPS = (1, 2, 5, 10)


@dataclass(frozen=True)
class Span:
    """An interval on an axis in percent; `cut_low` and `cut_high` say that it goes on beyond an end."""

    low: float
    high: float
    cut_low: bool
    cut_high: bool

    @property
    def width(self) -> float:
        return round(self.high - self.low, 2)


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` on 0 to 100%."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float], room: float = 0.04) -> "Axis":
        """Make an axis on which all values have a place, with some room at both ends."""
        numbers = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(numbers), max(numbers)
        margin = (high - low) * room or 1.0
        return cls(low - margin, high + margin)

    def place(self, value: float) -> float:
        """Return the place of a value; one beyond an end gets the end."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def span(self, low: float | None, high: float | None) -> Span | None:
        """Return the place of an interval; None if there is none."""
        if low is None or high is None:
            return None
        return Span(self.place(low), self.place(high), low < self.low, high > self.high)

    def ticks(self, wanted: int = 6) -> list[tuple[float, float]]:
        """Return round values with their places, about as many as `wanted`.

        >>> [value for value, _ in Axis(-3.0, 11.0).ticks()]
        [-2.0, 0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        """
        raw = (self.high - self.low) / wanted
        power = 10.0 ** math.floor(math.log10(raw))
        step = power * min(STEPS, key=lambda factor: abs(factor * power - raw))
        first = math.ceil(self.low / step)
        values = [round(step * number, 10) for number in range(first, math.floor(self.high / step) + 1)]
        return [(value, self.place(value)) for value in values]
