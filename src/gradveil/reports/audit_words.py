"""What the audit's pages say in words: outcomes, rates, promises of differential privacy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.reports.audit_record import Cell, Record, leak_of, severity


@dataclass(frozen=True)
class Outcome:
    """How the page names an outcome, marks it without colour, and explains it."""

    key: str
    words: str
    mark: str
    meaning: str


OUTCOME_WORDS = {
    "leaks": Outcome(
        "leaks",
        "leaks",
        "●",
        "The attacker rebuilt pictures beyond chance on more images than the limit δ allows, and the figures are "
        "certain enough to say so.",
    ),
    "some": Outcome(
        "some",
        "some images leak",
        "◐",
        "Single images stand out from the control, and did so again when the attack was repeated with other random "
        "numbers. Most did not.",
    ),
    "none-found": Outcome(
        "none-found",
        "no leak found at this strength",
        "○",
        "This attack, with this effort, on these images, stayed within the limit. A stronger attack may succeed. It is "
        "not a statement that the images are safe.",
    ),
    "undecided": Outcome(
        "undecided",
        "undecided",
        "?",
        "The figures allow neither answer. Treat it as an open question: more images or a longer attack may decide it.",
    ),
    "untrusted": Outcome(
        "untrusted",
        "not trustworthy",
        "✕",
        "A control failed, or the attack did not come to an end that counts. Nothing follows from these figures, least "
        "of all that nothing leaks.",
    ),
}
RESERVATIONS = {
    "undecided": "Measured, but too little to decide anything:",
    "untrusted": "Measured, but not to be relied on:",
}
"""What stands before a figure that must not be taken for an answer."""
KINDS = {
    "diagnostic": "Diagnostic: conditions that favour the attacker (such as evaluation mode, one image, known labels). "
    "It shows the most that leaks, not what a running system gives away.",
    "deployment": "Deployment: the client works as in real training, with its own batch size and local steps.",
}
DECLARATION = "This report does not constitute a determination of anonymity."


def name_cell(cell: Cell, attacks: int) -> str:
    """Name a cell; the attack is named only where there are several."""
    return f"{cell.phase} · {cell.arm}" + (f" · {cell.attack}" if attacks > 1 else "")


def say_identification(identification: Record) -> str:
    """Put an identification rate into a sentence.

    >>> say_identification({"found": 9, "images": 20, "candidates": 20, "low": 0.25, "high": 0.66})
    "In 9 of 20 images the attacker's picture points to the right one among 20 of its class; chance is 1 in 20."
    """
    found, images, candidates = (identification[key] for key in ("found", "images", "candidates"))
    return (
        f"In {found} of {images} images the attacker's picture points to the right one among {candidates} of its "
        f"class; chance is 1 in {candidates}."
    )


def say_interval(low: float | None, high: float | None) -> str:
    """Write an interval of shares.

    >>> say_interval(0.254, 0.661), say_interval(None, None)
    ('95% interval 25% to 66%', 'no interval')
    """
    return "no interval" if low is None or high is None else f"95% interval {low:.0%} to {high:.0%}"


def say_decibels(figure: Record | None) -> str:
    """Write a mean in decibels with its interval.

    >>> say_decibels({"mean": 3.14, "low": 1.0, "high": 5.0}), say_decibels(None)
    ('+3.1 dB (+1.0 to +5.0)', 'no result')
    """
    if figure is None:
        return "no result"
    low, high = figure.get("low"), figure.get("high")
    interval = "" if low is None or high is None else f" ({signed(low)} to {signed(high)})"
    return f"{signed(figure['mean'])} dB{interval}"


def signed(value: float) -> str:
    """Write a number with its sign, and zero as plain zero.

    >>> signed(1.26), signed(-2.0), signed(-0.04)
    ('+1.3', '−2.0', '0.0')
    """
    text = f"{value:+.1f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def say_cost(cost: float) -> str:
    """Write what an arm costs in points of accuracy.

    >>> say_cost(0.081), say_cost(-0.02), say_cost(0.001)
    ('8 points less than none', '2 points more than none', 'as much as none')
    """
    points = round(100 * cost)
    return f"{abs(points)} points {'less' if points > 0 else 'more'} than none" if points else "as much as none"


def rate_of(cell: Cell) -> float | None:
    """Return the identification rate of a cell."""
    found = cell.summary.get("identification")
    return found["found"] / found["images"] if found and found["images"] else None


def worst_cell(cells: Sequence[Cell]) -> Cell:
    """Choose the cell to lead with: the worst outcome, then the highest rate, then the largest advantage."""

    def key(cell: Cell) -> tuple[int, float, float]:
        rate = rate_of(cell)
        leaks = [leak for leak in map(leak_of, cell.rows) if leak is not None]
        return -severity(cell.outcome), -1.0 if rate is None else rate, max(leaks, default=float("-inf"))

    return max(cells, key=key)


def say_false_findings(expected: float | None) -> str:
    """State how many false findings to expect.

    >>> say_false_findings(0.05)
    'Expected number of false findings in this audit: at most 0.05.'
    """
    if expected is None:
        return "Expected number of false findings in this audit: not known."
    return f"Expected number of false findings in this audit: at most {expected:.2g}."


def say_guarantee(guarantee: Record | None, what: str) -> str | None:
    """State ε with its unit and trust model; None where there is no differential privacy."""
    if guarantee is None:
        return None
    if guarantee.get("epsilon") is None:
        return f"{what}: no ε can be stated ({guarantee.get('remark') or 'no guarantee'})."
    steps = guarantee.get("steps")
    count = "" if steps is None else f", over {steps} {'step' if steps == 1 else 'steps'}"
    return f"{what}: ε = {guarantee['epsilon']:.3g} at δ = {write_small(guarantee['delta'])}{count}."


def write_small(value: float) -> str:
    """Write a small number without a zero in its exponent.

    >>> write_small(1e-5), write_small(0.01)
    ('1e-5', '0.01')
    """
    return f"{value:g}".replace("e-0", "e-")


TRUST = (
    "Unit: one training image more or less. Trust model: the client adds the noise itself, before anything leaves it; "
    "the promise then holds against everyone who receives the update, and for images, not for people who have several."
)


def describe_arm(name: str, notes: Record, told: bool, accuracy: float | None) -> dict[str, Any]:
    """Collect what the page says of one arm."""
    promises = [
        say_guarantee(notes.get("training"), "Whole training"),
        say_guarantee(notes.get("released"), "The release that is attacked"),
    ]
    bound = notes.get("bound")
    if bound is not None:
        promises.append(f"What succeeds by chance in 1% of cases succeeds from this release in at most {bound:.1%}.")
    stated = [promise for promise in promises if promise]
    return {
        "name": name,
        "defences": list(notes.get("defences") or ()),
        "edits": list(notes.get("edits") or ()),
        "told": told,
        "used": dict(notes.get("used") or {}),
        "promises": stated,
        "accuracy": accuracy,
    }
