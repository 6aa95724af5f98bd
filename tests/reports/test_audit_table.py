"""The rows as the page's table and as CSV."""

import csv
import io

from gradveil.reports import write_csv
from gradveil.reports.audit_table import make_table
from tests.reports.audit_records import CLASS_NAMES, SCRIPT, make_record


def test_the_table_has_every_row_and_no_column_without_news() -> None:
    record = make_record()
    table = make_table(record)
    columns = {column["key"]: column for column in table["columns"]}
    assert table["count"] == 48
    assert all(len(column["values"]) == 48 for column in table["columns"])
    assert "attack" not in columns
    texts = table["texts"]
    assert {texts[place] for place in columns["class"]["values"]} == set(CLASS_NAMES)
    assert texts[columns["arm"]["values"][-1]] == SCRIPT
    assert columns["leak"]["values"][5] is None
    assert texts[columns["remarks"]["values"][5]] == "the loss became <b>NaN</b>"
    leak = max(record["rows"][0]["advantage_transformed"], record["rows"][0]["advantage_original"])
    assert abs(columns["leak"]["values"][0] - leak) <= 0.005


def test_two_attacks_keep_their_column() -> None:
    record = make_record()
    record["rows"][0]["attack"] = "standard"
    assert "attack" in {column["key"] for column in make_table(record)["columns"]}


def test_a_label_without_a_name_is_its_number() -> None:
    record = make_record(cells=(("none", "init", "leaks"),)) | {"class_names": []}
    table = make_table(record)
    place = next(column for column in table["columns"] if column["key"] == "class")["values"][2]
    assert table["texts"][place] == "2"


def test_the_csv_has_all_figures_of_all_rows() -> None:
    record = make_record()
    lines = list(csv.DictReader(io.StringIO(write_csv(record))))
    assert len(lines) == 48
    assert set(lines[0]) == set(record["rows"][0])
    assert float(lines[3]["advantage_original"]) == record["rows"][3]["advantage_original"]
    assert lines[5]["status"] == "failed"


def test_a_name_cannot_become_a_formula() -> None:
    record = make_record(cells=(("=1+1", "init", "leaks"),))
    assert next(csv.DictReader(io.StringIO(write_csv(record))))["arm"] == "'=1+1"
