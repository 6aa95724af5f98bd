"""Which rebuilt image is of which true one."""

import torch

from gradveil.audit.pairing import labels_agree, share_out
from gradveil.rng import generator
from gradveil.types import Batch, Reconstruction


def batch(labels: list[int]) -> Batch:
    return Batch(torch.rand(len(labels), 1, 12, 12, generator=generator(1)), torch.tensor(labels))


def test_each_image_gets_the_rebuilt_one_nearest_to_it() -> None:
    fed = batch([3, 1, 3, 0])
    order = torch.tensor([2, 3, 0, 1])
    found = Reconstruction(fed.images[order], fed.labels[order], 0.0)
    for place, single in enumerate(share_out(found, fed)):
        assert torch.equal(single.images, fed.images[place : place + 1])
        assert single.labels.tolist() == [fed.labels[place]]


def test_an_image_is_not_taken_under_another_label() -> None:
    fed = batch([0, 1])
    found = Reconstruction(fed.images, torch.tensor([1, 0]), 0.0)
    first, second = share_out(found, fed)
    assert first.labels.tolist() == [0]
    assert torch.equal(first.images, fed.images[1:])
    assert torch.equal(second.images, fed.images[:1])


def test_wrong_labels_are_paired_by_the_picture_alone() -> None:
    fed = batch([0, 1])
    found = Reconstruction(fed.images.flip(0), torch.tensor([5, 6]), 0.0)
    assert [single.labels.tolist() for single in share_out(found, fed)] == [[6], [5]]


def test_a_failed_attack_fails_for_everyone() -> None:
    fed = batch([0, 1])
    found = Reconstruction(fed.images, fed.labels, float("nan"), "failed")
    assert [single.status for single in share_out(found, fed)] == ["failed", "failed"]


def test_labels_agree_whatever_their_order() -> None:
    assert labels_agree(torch.tensor([3, 1, 2]), torch.tensor([1, 2, 3])) == 1
    assert labels_agree(torch.tensor([0, 0, 0, 0]), torch.tensor([0, 1, 2, 3])) == 0.25
