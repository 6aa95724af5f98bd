from gradveil.experiments.markdown import write_table


def test_tables_are_markdown() -> None:
    rows = (row for row in [["1", "2"], ["3", "4"]])
    assert write_table(("a", "b"), rows) == ["| a | b |", "|---|---|", "| 1 | 2 |", "| 3 | 4 |"]
    assert write_table(["a"], []) == ["| a |", "|---|"]
