"""Tables as the pages of results have them."""

from collections.abc import Iterable, Sequence


def write_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a table in Markdown, line by line.

    >>> write_table(["a", "b"], [["1", "2"]])
    ['| a | b |', '|---|---|', '| 1 | 2 |']
    """
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return [*head, *("| " + " | ".join(row) + " |" for row in rows)]
