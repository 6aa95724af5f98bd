"""The tables in the documentation are those of the committed journals."""

from pathlib import Path

from gradveil.experiments.federated import PARTS
from gradveil.experiments.federated_leak import trials
from gradveil.experiments.federated_tables import make_table
from gradveil.experiments.leak_tables import make_overview
from gradveil.journal import Journal
from scripts import measure_gate

DOCS = Path(__file__).parents[2] / "docs"
MEASURED = DOCS / "measured" / "federated-accuracy"


def test_the_accuracies_are_those_of_the_journal() -> None:
    text, entries = (DOCS / "federated.md").read_text(), Journal(MEASURED / "journal.jsonl").read()
    for part in ("accuracy", "gap"):
        assert "\n".join(make_table(list(PARTS[part]()), entries)) in text


def test_the_leak_is_that_of_the_journal() -> None:
    table = make_overview(trials(), Journal(MEASURED / "leak.jsonl").read())
    assert "\n".join(table) in (DOCS / "federated.md").read_text()


def test_the_gates_figures_are_those_of_the_journal() -> None:
    assert "\n".join(measure_gate.make_table(DOCS / "measured" / "gate")) in (DOCS / "flower-mods.md").read_text()
