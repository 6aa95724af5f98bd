"""The picture of leak against round."""

import io

from PIL import Image

from gradveil.audit import Row
from gradveil.reports import draw_leak_by_round
from gradveil.types import Status


def row(number: int, advantage: float | None) -> Row:
    status: Status = "failed" if advantage is None else "ok"
    return Row(
        "none",
        f"round-{number}",
        "fast",
        0,
        0,
        status,
        advantage_transformed=advantage,
        advantage_original=advantage,
    )


def test_failed_attacks_are_left_out_and_single_images_are_drawn() -> None:
    rows = [row(1, 3.0), row(1, None), *(row(10, float(value)) for value in range(8))]
    with_all, without = draw_leak_by_round(rows, "leak"), draw_leak_by_round(rows[:2], "leak")
    assert Image.open(io.BytesIO(with_all)).size == Image.open(io.BytesIO(without)).size
    assert with_all != without
