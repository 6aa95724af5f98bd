"""Put the tables of the committed journals into the pages on collaborative training and on mods for Flower apps."""

import re
from pathlib import Path

from gradveil.experiments.federated import PARTS
from gradveil.experiments.federated_leak import trials
from gradveil.experiments.federated_tables import describe, make_table
from gradveil.experiments.leak_tables import make_overview
from gradveil.journal import Journal
from scripts import measure_gate

DOCS = Path(__file__).parents[1] / "docs"
MEASURED = DOCS / "measured" / "federated-accuracy"


def replace_table(text: str, table: list[str]) -> str:
    """Put a table in the place of the one with the same first line."""
    pattern = re.escape(table[0]) + r"\n(?:\|.*\n)*"
    if not re.search(pattern, text):
        raise SystemExit(f"no table with the first line {table[0]} in the page")
    return re.sub(pattern, lambda _: "\n".join(table) + "\n", text, count=1)


def replace_sentence(text: str, pattern: str, sentence: str) -> str:
    """Put a line in the place of the one that matches."""
    return re.sub(rf"^{pattern}.*$", lambda _: sentence, text, count=1, flags=re.MULTILINE)


def main() -> None:
    """Rewrite the tables and the lines that say how much was run."""
    entries = Journal(MEASURED / "journal.jsonl").read()
    page = DOCS / "federated.md"
    text = page.read_text()
    for part in ("accuracy", "gap"):
        text = replace_table(text, make_table(list(PARTS[part]()), entries))
    text = replace_sentence(text, r"\d+ of \d+ trainings were run", describe(list(PARTS["accuracy"]()), entries)[0])
    *table, _, sentence = make_overview(trials(), Journal(MEASURED / "leak.jsonl").read())
    text = replace_sentence(replace_table(text, table), r"\d+ of \d+ rounds were attacked", sentence)
    page.write_text(text)
    page = DOCS / "flower-mods.md"
    page.write_text(replace_table(page.read_text(), measure_gate.make_table(DOCS / "measured" / "gate")))


if __name__ == "__main__":
    main()
