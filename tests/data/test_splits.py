import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradveil.data.base import ImageSet
from gradveil.data.splits import Split, split_images
from gradveil.errors import SettingsError


@given(st.lists(st.integers(0, 4), min_size=1, max_size=80), st.floats(0.01, 0.99), st.integers(0, 1000))
def test_each_class_is_parted_by_the_fraction(labels: list[int], fraction: float, seed: int) -> None:
    tensor = torch.tensor(labels)
    in_train = Split(fraction, seed).draw(tensor)
    assert torch.equal(in_train, Split(fraction, seed).draw(tensor))
    for label in set(labels):
        members = in_train[tensor == label]
        tested = int((~members).sum())
        assert tested < len(members)
        assert tested > 0 or len(members) == 1
        assert abs(tested - fraction * len(members)) <= 1


def test_parting_keeps_order_and_loses_nothing() -> None:
    images = ImageSet(torch.arange(6, dtype=torch.uint8).reshape(6, 1, 1, 1), torch.arange(6))
    for mask in ([True, False, True, True, False, True], [True, True, True, True, False, False]):
        train, test = split_images(images, torch.tensor(mask))
        assert train.labels.tolist() == [number for number in range(6) if mask[number]]
        assert test.labels.tolist() == [number for number in range(6) if not mask[number]]
        assert train.images.flatten().tolist() == train.labels.tolist()


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, float("nan")])
def test_a_fraction_lies_between_nought_and_one(fraction: float) -> None:
    with pytest.raises(SettingsError, match="between 0 and 1"):
        Split(fraction)
