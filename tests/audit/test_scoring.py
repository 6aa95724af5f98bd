"""A row: every score beside its floor, and nothing but a reason where there is no result."""

import torch

from gradveil import data
from gradveil.audit import Attacked, make_floors
from gradveil.audit.scoring import Row, score_cell
from gradveil.defences import parse_arm
from gradveil.rounds import Truth
from gradveil.types import Reconstruction, to_pixels

SAMPLE = data.load("fashion-mnist-sample")


def attacked(result: Reconstruction, fed_label: int | None = None) -> Attacked:
    original, label = to_pixels(SAMPLE.test.images[:1]), int(SAMPLE.test.labels[0])
    truth = Truth(0, label, original, original.flip(3), label if fed_label is None else fed_label)
    return Attacked(truth, result, 2.0, 1.0)


def score(result: Reconstruction, fed_label: int | None = None) -> Row:
    floors = make_floors(SAMPLE, [parse_arm("none")], 200, True, 0, lambda _: None)["none"]
    (row,) = score_cell("none", "init", "fast", [attacked(result, fed_label)], floors)
    return row


def test_each_guess_is_judged_where_it_belongs() -> None:
    original = to_pixels(SAMPLE.test.images[:1])
    row = score(Reconstruction(original, SAMPLE.test.labels[:1], 0.1, transformed=original.flip(3)))
    assert row.psnr_original is not None
    assert row.psnr_transformed is not None
    assert min(row.psnr_original, row.psnr_transformed) > 80
    assert row.label_found is True
    assert row.seconds == 2.0


def test_a_flip_is_given_away_by_the_aligned_score() -> None:
    flipped = to_pixels(SAMPLE.test.images[:1]).flip(3)
    row = score(Reconstruction(flipped, SAMPLE.test.labels[:1], 0.1))
    assert row.psnr_aligned is not None
    assert row.psnr_original is not None
    assert row.psnr_aligned > 60 > row.psnr_original


def test_the_label_that_was_fed_counts() -> None:
    original = to_pixels(SAMPLE.test.images[:1])
    other = (int(SAMPLE.test.labels[0]) + 1) % 10
    assert score(Reconstruction(original, SAMPLE.test.labels[:1], 0.1), fed_label=other).label_found is False


def test_without_a_result_there_is_a_reason_and_no_figure() -> None:
    for status in ("failed", "refused"):
        result = Reconstruction(torch.zeros(1, 1, 28, 28), torch.tensor([0]), 1.0, status, reason="it broke")
        row = score(result)
        assert (row.status, row.reason, row.psnr_transformed) == (status, "it broke", None)
