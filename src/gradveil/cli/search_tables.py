"""The result and the status of a search, as tables on the console."""

from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gradveil.cli.options import print_path
from gradveil.metrics import Interval
from gradveil.scores import find_score
from gradveil.search import SearchStatus, find_indistinct


def print_summary(console: Console, result: dict[str, Any], folder: Path) -> None:
    """Print the ranking, what was measured, and what was written."""
    console.print(make_ranking(result))
    if result["validation"]:
        console.print(make_validation(result["validation"]))
    counts, settings = result["counts"], result["settings"]
    console.print(
        f"{counts['drawn']} drawn, {counts['different']} different functions; {counts['with_accuracy']} have S_acc, "
        f"{counts['unfit']} unfit, {counts['rejected']} rejected on rough scores, "
        f"{counts['kept'] + counts['beaten']} scored in full; {result['processor_seconds']:.0f} s of processor time",
        highlight=False,
    )
    if settings["strategy"] != "random":
        console.print(
            f"Of the true best {settings['keep']} of these, at most {settings['error']:.0%} are lost on average, if "
            "errors are near normal (docs/search.md).",
            highlight=False,
        )
    print_against_none(console, result)
    console.print(f"hybrid: {result['hybrid']}", style="bold", highlight=False)
    if not result["validation"]:
        console.print("Scores are no measurement: --validate N attacks and trains with the best N.", highlight=False)
    for name in ("search.json", "policies.json", "index.html"):
        print_path(console, folder / name)


def print_against_none(console: Console, result: dict[str, Any]) -> None:
    """Say which policies are not shown to be better than none, and what the score tells at all."""
    label, indistinct = find_score(result["settings"]["score"]).label, find_indistinct(result["policies"])
    if indistinct:
        console.print(
            f"Not distinguishable from no policy by {label} on {result['settings']['images']} images: "
            f"{', '.join(indistinct)}. More images (--images) may tell.",
            highlight=False,
        )
    if label == "S_pri":
        console.print(
            "S_pri tells how soon a gradient resembles that of the transformed image; it is no measured leak, and on "
            "small networks policies with a lower S_pri leaked more (docs/scores.md).",
            highlight=False,
        )


def make_ranking(result: dict[str, Any]) -> Table:
    settings, threshold = result["settings"], result["accuracy_least"]
    kind = find_score(settings["score"])
    asked = "" if threshold is None else f"; at least {threshold:.4g} was asked for"
    caption = (
        f"{kind.label}: {settings['images']} images, {kind.unit or settings['quadrature']}, {settings['loss']}, mean ± "
        f"half the 95% interval, lower is meant to hide more. S_acc: higher costs less{asked}."
    )
    table = Table(title=f"The best {settings['keep']} by {settings['select']}", caption=caption, box=SIMPLE_HEAD)
    for column in ("", "policy", kind.label, "− none", "S_acc", "transformations"):
        table.add_column(column, justify="left" if column in ("policy", "transformations") else "right")
    for rank, entry in enumerate(result["policies"], 1):
        table.add_row(
            str(rank),
            entry["policy"],
            say_privacy(entry),
            f"{entry['against_none']:+.4f}",
            f"{entry['accuracy']:.4g}",
            entry["readable"],
        )
    none = result["none"]
    table.add_row("", "none", say_privacy(none), "", "–" if none["accuracy"] is None else f"{none['accuracy']:.4g}", "")
    return table


def say_privacy(entry: dict[str, Any]) -> str:
    names = ("privacy", "privacy_low", "privacy_high", "privacy_std", "images")
    return Interval(*(entry[name] for name in names)).text(4)


def make_validation(lines: list[dict[str, Any]]) -> Table:
    table = Table(
        title="Really attacked, really trained",
        caption="Advantage: dB over chance, mean ± half the 95% interval; none: the base augmentation alone",
        box=SIMPLE_HEAD,
    )
    for column in ("policy", "score", "S_acc", "advantage", "finding", "test accuracy"):
        table.add_column(column, justify="left" if column in ("policy", "finding") else "right")
    for line in lines:
        advantage = Interval(line["advantage"], line["advantage_low"], line["advantage_high"], None, line["images"])
        table.add_row(
            line["policy"],
            f"{line['privacy']:.4f}",
            f"{line['accuracy']:.4g}",
            "–" if line["advantage"] is None else advantage.text(signed=True),
            line["finding"],
            f"{line['test_accuracy']:.1%}",
        )
    return table


def print_status(console: Console, status: SearchStatus) -> None:
    """Print how far a search is and who leads."""
    console.print(status.headline, style="bold", highlight=False)
    if not status.leaders:
        return
    table = Table(title="Leaders so far" if not status.finished else "The best", box=SIMPLE_HEAD)
    for column in ("policy", find_score(status.settings.score).label, "images", "S_acc"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for one in status.leaders:
        accuracy_score = "–" if one.accuracy_score is None else f"{one.accuracy_score:.4g}"
        privacy = f"{one.privacy:.4f}" + ("" if one.exact else " (rough)")
        table.add_row(one.policy, privacy, str(one.images), accuracy_score)
    console.print(table)
