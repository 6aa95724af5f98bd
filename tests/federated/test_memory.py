"""What a client remembers of its round."""

import pytest
import torch

from gradveil.errors import DataError
from gradveil.federated.memory import remember, remembering
from tests.federated.small_app import describe, make_images


def test_without_a_mod_nothing_is_kept() -> None:
    remember(*make_images())
    with remembering() as memory:
        assert memory.labels == []


def test_mods_share_one_memory_and_it_ends_with_the_round() -> None:
    with remembering() as outer:
        with remembering() as inner:
            remember(*make_images())
        assert inner is outer
    with remembering() as later:
        assert later is not outer
        assert later.labels == []


def test_the_first_epoch_is_the_truth_in_pixels() -> None:
    app, (images, labels) = describe(), make_images()
    with remembering() as memory:
        remember(images, labels, originals=-images)
        remember(images.flip(0), labels.flip(0))
    truths = memory.truths(app, 2)
    assert [(truth.image, truth.label, truth.fed_label) for truth in truths] == [(0, 0, 0), (1, 2, 2)]
    assert torch.equal(torch.cat([truth.transformed for truth in truths]), app.to_pixels(images))
    assert torch.equal(truths[0].original, app.to_pixels(-images)[:1])


def test_images_that_were_not_handed_over_are_missed() -> None:
    with remembering() as memory:
        remember(*make_images())
        with pytest.raises(DataError, match="2 images of 5"):
            memory.truths(describe(), 5)


def test_a_later_change_of_the_tensor_changes_nothing() -> None:
    images, labels = make_images()
    with remembering() as memory:
        remember(images, labels)
        images.zero_()
        assert float(memory.fed[0].abs().sum()) > 0


@pytest.mark.parametrize(("images", "labels"), [((2, 10, 10), (2,)), ((2, 1, 10, 10), (3,))])
def test_wrong_shapes_are_refused(images: tuple[int, ...], labels: tuple[int, ...]) -> None:
    with remembering(), pytest.raises(DataError, match="shape"):
        remember(torch.zeros(images), torch.zeros(labels, dtype=torch.int64))
