"""What `gradveil federate` prints."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Column, Table

from gradveil.cli.options import count
from gradveil.errors import printable
from gradveil.federated import FederatedSettings, RoundOutcome

SHOWN = 10


def make_table(rounds: Sequence[RoundOutcome]) -> Table:
    """Lay out some of the tested rounds, evenly over the run, and every round with a dropped reply up to a limit."""
    tested = [outcome for outcome in rounds if outcome.test_accuracy is not None]
    step = max(1, -(-len(tested) // SHOWN))
    chosen = {outcome.round for outcome in tested[::-1][::step]}
    chosen |= {outcome.round for outcome in [one for one in rounds if one.dropped][:SHOWN]}
    table = Table(box=None, pad_edge=False)
    for column in ("round", "loss", "test accuracy", "valid"):
        table.add_column(column, justify="right")
    table.add_column("dropped", overflow="fold")
    for outcome in rounds:
        if outcome.round in chosen:
            table.add_row(
                str(outcome.round),
                "–" if outcome.loss is None else f"{outcome.loss:.3f}",
                "–" if outcome.test_accuracy is None else f"{outcome.test_accuracy:.2%}",
                str(outcome.valid),
                printable("; ".join(map(str, outcome.dropped))),
            )
    return table


def summarise(settings: FederatedSettings, rounds: Sequence[RoundOutcome], seconds: float, folder: Path) -> Table:
    """Show the outcome in a few lines."""
    table = Table("", Column("", overflow="fold"), show_header=False, box=None, pad_edge=False)
    table.add_row("clients", printable(f"{settings.clients}, {settings.partition}; {settings.data}; {settings.arm}"))
    each = f"{seconds / len(rounds):.2f} s a round"
    table.add_row(
        "training", f"{settings.model}, {settings.algorithm}, {count(len(rounds), 'round')}, {seconds:.0f} s, {each}"
    )
    table.add_row("dropped", count(sum(len(outcome.dropped) for outcome in rounds), "reply", "replies"))
    table.add_row("test accuracy", f"{rounds[-1].test_accuracy:.2%}", style="bold")
    table.add_row("written to", printable(f"{folder}/ (final.safetensors, journal.jsonl, curve.png, federate.json)"))
    return table
