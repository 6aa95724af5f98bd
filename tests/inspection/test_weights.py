import pytest
import torch

from gradveil.inspection.weights import is_ladder, is_mirrored, look_at_weights


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def test_random_rows_show_nothing() -> None:
    seen = look_at_weights(draw(64, 3, 3, 3), draw(64))
    assert seen is not None
    assert (seen.rows, seen.zero, seen.copies, seen.constant, seen.mirrored, seen.ladder) == (64, 0, 0, 0, 0, False)
    assert 4 < seen.norm < 6


@pytest.mark.parametrize("shape", [(7, 100), (100, 7), (100, 1, 2, 2)])
def test_a_small_tensor_is_not_judged(shape: tuple[int, ...]) -> None:
    assert look_at_weights(torch.ones(shape), None) is None


def test_copies_are_found_whatever_their_scale_and_sign() -> None:
    rows = draw(2000, 16)
    rows[500:1500] = rows[0] * draw(1000, 1)
    seen = look_at_weights(rows, None)
    assert seen is not None
    assert seen.copies == pytest.approx(1001 / 2000)


def test_zero_and_constant_rows_are_told_apart() -> None:
    rows = draw(10, 16)
    rows[:5] = 0
    rows[5:7] = 0.25
    seen = look_at_weights(rows, None)
    assert seen is not None
    assert (seen.zero, seen.constant, seen.copies) == (0.5, 0.4, 0.4)


def test_a_row_of_which_one_half_mirrors_the_other() -> None:
    values = draw(50).abs()
    mirrored = torch.cat([-values, 0.9 * values.flip(0)])[torch.randperm(100)]
    assert is_mirrored(mirrored)
    assert not is_mirrored(draw(100))
    assert not is_mirrored(torch.cat([-values, draw(50).abs() + 0.01]))
    assert not is_mirrored(torch.ones(100).mul(0.1).copysign(draw(100)))


def test_a_ladder_is_strictly_ordered() -> None:
    assert is_ladder(torch.linspace(1, -1, 20))
    assert not is_ladder(torch.zeros(20))
    assert not is_ladder(draw(20))
    assert not is_ladder(torch.linspace(0, 1, 10))
