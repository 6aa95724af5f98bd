"""What secure aggregation leaves to the server, and how its reconstruction is shared out."""

import pytest
import torch
from torch.nn import functional as F

from gradveil.audit import AuditSettings
from gradveil.audit.aggregation import aggregate, share_out
from gradveil.client import local_update
from gradveil.errors import SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.types import Batch, Reconstruction


def batch(labels: list[int]) -> Batch:
    return Batch(torch.rand(len(labels), 1, 12, 12, generator=generator(1)), torch.tensor(labels))


def test_the_aggregate_is_the_gradient_of_all_images_together() -> None:
    model = ModelSpec("mlp", (1, 12, 12), 4, (0.5,), (0.5,)).build(generator(0)).eval()
    everyone = batch([2, 0, 2])
    single = [Batch(everyone.images[place : place + 1], everyone.labels[place : place + 1]) for place in range(3)]
    mean = aggregate([local_update(model, F.cross_entropy, one) for one in single])
    together = local_update(model, F.cross_entropy, everyone)
    assert mean.images == 3
    assert mean.labels is not None
    assert mean.labels.tolist() == [2, 0, 2]
    for name, tensor in together.tensors.items():
        torch.testing.assert_close(mean.tensors[name], tensor)


def test_one_hidden_label_hides_them_all() -> None:
    model = ModelSpec("mlp", (1, 12, 12), 4, (0.5,), (0.5,)).build(generator(0)).eval()
    updates = [local_update(model, F.cross_entropy, batch([1]), share_labels=shared) for shared in (True, False)]
    assert aggregate(updates).labels is None


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


def test_an_incomplete_aggregate_is_refused() -> None:
    with pytest.raises(SettingsError, match="multiple"):
        AuditSettings(images=8, participants=3)
