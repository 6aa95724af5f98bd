"""The audit's rows as the page's table and as CSV."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.reports.audit_record import Record, leak_of


@dataclass(frozen=True)
class Column:
    """A column of the page's table: its heading, where it comes from, how it is written, and what it means."""

    heading: str
    key: str
    kind: str
    meaning: str
    digits: int = 1


FORMULAS = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = (
    Column(
        "phase",
        "phase",
        "text",
        "how far the model was trained; given: its weights as they came",
    ),
    Column("arm", "arm", "text", "the defence"),
    Column("attack", "attack", "text", "the attack"),
    Column("image", "image", "integer", "the image's number in the data set"),
    Column("class", "class", "text", "the image's class"),
    Column("beyond chance", "leak", "signed", "the larger of the next two, dB"),
    Column(
        "at T(x)", "advantage_transformed", "signed", "aligned PSNR minus its floor, against what the model was fed, dB"
    ),
    Column("at x", "advantage_original", "signed", "aligned PSNR minus its floor, against the original, dB"),
    Column("reached", "reached", "boolean", "at or above the threshold"),
    Column("stands out", "hit", "boolean", "passes Holm's test against the control"),
    Column("p", "p_value", "small", "probability of so much under the control"),
    Column("identified", "identified", "boolean", "the true image is the nearest of the candidates"),
    Column("rank", "rank", "integer", "place of the true image among the candidates, 1 is nearest"),
    Column("candidates", "candidates", "integer", "how many candidates of its class"),
    Column("PSNR T(x)", "psnr_transformed", "number", "dB"),
    Column("PSNR x", "psnr_original", "number", "dB"),
    Column("SSIM T(x)", "ssim_transformed", "number", "1 is equal", 2),
    Column("SSIM x", "ssim_original", "number", "1 is equal", 2),
    Column("match, rebuilt", "match_rebuilt", "small", "distance of the rebuilt picture's update to the released one"),
    Column("match, truth", "match_truth", "small", "the same for the true picture"),
    Column("label found", "label_found", "boolean", "the attack used the true class"),
    Column("seconds", "seconds", "number", "time of the attack"),
    Column("status", "status", "text", "ok, or why there is no result"),
    Column("remarks", "remarks", "text", "reasons and approximations"),
)


def make_table(record: Record) -> dict[str, Any]:
    """Return the columns with their values, texts as places in one list; those without news are left out."""
    rows = record["rows"]
    texts: dict[str, int] = {}
    columns = []
    for column in COLUMNS:
        values = [value_of(row, column, record["class_names"]) for row in rows]
        if all(value is None or value == "" for value in values) or (column.key == "attack" and len(set(values)) == 1):
            continue
        if column.kind == "text":
            values = [texts.setdefault(str(value), len(texts)) for value in values]
        columns.append(
            {
                "heading": column.heading,
                "key": column.key,
                "kind": column.kind,
                "digits": column.digits,
                "meaning": column.meaning,
                "values": values,
            }
        )
    return {"count": len(rows), "texts": list(texts), "columns": columns}


def value_of(row: Record, column: Column, class_names: Sequence[str]) -> Any:
    if column.key == "class":
        label = row["label"]
        known = isinstance(label, int) and 0 <= label < len(class_names)
        return class_names[label] if known else str(label)
    if column.key == "remarks":
        parts = [row.get("reason"), *as_list(row.get("approximations"))]
        return "; ".join(str(part) for part in parts if part)
    value = leak_of(row) if column.key == "leak" else row.get(column.key)
    if isinstance(value, float):
        return shorten(value, column)
    return value


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def shorten(value: float, column: Column) -> float | None:
    """Keep the digits that the page shows and one more: thousands of rows are embedded."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.3g}") if column.kind == "small" else round(value, column.digits + 1)


def write_csv(record: Record) -> str:
    """Write one line for each row with everything that the record has of it."""
    names = list(dict.fromkeys(key for row in record["rows"] for key in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: to_text(value) for key, value in row.items()} for row in record["rows"])
    return buffer.getvalue()


def to_text(value: Any) -> Any:
    """Join lists; a text that a spreadsheet would run as a formula gets an apostrophe in front.

    >>> to_text(["a", "b"]), to_text("=1+1"), to_text(-0.5)
    ('a; b', "'=1+1", -0.5)
    """
    text = "; ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULAS) else text
