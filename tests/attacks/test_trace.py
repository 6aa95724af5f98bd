"""What is noted of runs, and the results made of it."""

import math

import pytest
import torch

from gradveil.attacks.trace import PICTURES, Snapshot, Trace, find_failure

IMAGES = torch.full((1, 1, 2, 2), 0.5)
LABELS = torch.tensor([1])


def snapshot(step: int, rows: list[int]) -> Snapshot:
    distances = [step + row / 10 for row in rows]
    pixels = torch.full((len(rows), 1, 1, 2, 2), float(step))
    return Snapshot(step, rows, distances, {"weight": [-value for value in distances]}, pixels)


def test_a_result_holds_what_was_noted_of_its_own_run() -> None:
    trace = Trace(3)
    for step in range(4):
        trace.note(snapshot(step, [0, 2] if step < 2 else [2]))
    result = trace.make_result(2, IMAGES, LABELS, None, ("an approximation",))
    assert result.history == ((0, 0.2), (1, 1.2), (2, 2.2), (3, 3.2))
    assert result.similarities[-1] == (3, {"weight": -3.2})
    assert result.approximations == ("an approximation",)
    assert (result.status, result.reason) == ("ok", "")
    assert [float(picture.mean()) for _, picture in result.pictures] == [0, 1, 2, 3]
    assert [step for step, _ in trace.make_result(0, IMAGES, LABELS, None, ()).history] == [0, 1]


def test_not_every_picture_is_kept() -> None:
    trace = Trace(1)
    for step in range(30):
        trace.note(snapshot(step, [0]))
    assert len(trace.make_result(0, IMAGES, LABELS, None, ()).pictures) == PICTURES


@pytest.mark.parametrize(
    ("history", "images", "reason"),
    [
        (((0, 1.0), (5, 0.5)), IMAGES, ""),
        (((0, 1.0), (5, math.nan), (9, math.inf)), IMAGES, "the matching loss was not finite at step 5"),
        (((0, math.nan), (5, 1.0)), IMAGES, ""),
        (((0, 1.0), (5, 1.0)), IMAGES * math.nan, "the images were not finite at step 5"),
    ],
)
def test_a_failure_says_what_happened(
    history: tuple[tuple[int, float], ...], images: torch.Tensor, reason: str
) -> None:
    assert find_failure(history, images) == reason
