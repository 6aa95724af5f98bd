"""The null that is made on purpose: what is released is of another image, and the audit does not meet that image."""

import torch

from gradveil import data
from gradveil.audit import Audit, AuditSettings, choose_candidates
from gradveil.client import Client
from gradveil.defences import defend_batch, parse_arm
from gradveil.experiments.wrong_gradient import SET_ASIDE, WrongGradient, set_aside, swap_gradients
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.types import Batch

SAMPLE = data.load("fashion-mnist-sample")
REST, ASIDE = set_aside(SAMPLE, 3)


def keys(images: torch.Tensor) -> set[bytes]:
    return {bytes(image.numpy()) for image in images}


def test_what_is_set_aside_is_neither_attacked_nor_a_candidate() -> None:
    assert torch.bincount(ASIDE.labels).tolist() == [SET_ASIDE] * 10
    assert len(REST.test) + len(ASIDE) == len(SAMPLE.test)
    assert not keys(ASIDE.images) & keys(REST.test.images)
    audit = Audit(AuditSettings(images=8, arms=("none",), phases=("init",), seed=3), data=REST)
    labels = REST.test.labels[list(audit.places)]
    assert not keys(ASIDE.images) & keys(choose_candidates(REST, audit.places, labels, 3).images)


def test_another_seed_sets_other_images_aside() -> None:
    assert keys(set_aside(SAMPLE, 4)[1].images) != keys(ASIDE.images)


def test_the_update_is_that_of_another_image_with_the_same_label() -> None:
    spec = ModelSpec("lenet-relu", SAMPLE.shape, SAMPLE.classes, SAMPLE.mean, SAMPLE.std)
    model = spec.build(generator(0, "model"))
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    batch = Batch(REST.test.images[:1], REST.test.labels[:1])

    def release(batch: Batch, *defences: WrongGradient) -> torch.Tensor:
        update = Client(model).update(weights, batch, defences, generator(0, "draw"))
        return torch.cat([tensor.flatten() for tensor in update.tensors.values()])

    wrong = release(batch, WrongGradient(ASIDE, ()))
    assert not torch.allclose(wrong, release(batch))
    same = (ASIDE.labels == batch.labels).nonzero().flatten()
    others = [release(ASIDE.take(place[None]).batch()) for place in same]
    assert sum(torch.allclose(wrong, other, atol=1e-6) for other in others) == 1


def test_the_other_image_goes_through_draws_of_its_own() -> None:
    arm = swap_gradients(parse_arm("crop-flip"), ASIDE)
    assert (arm.name, [str(defence) for defence in arm.defences]) == ("crop-flip", ["crop-flip", "wrong-gradient"])
    wrong = arm.defences[-1]
    assert isinstance(wrong, WrongGradient)
    batch = REST.test.take(torch.arange(6)).batch()
    fed = defend_batch(arm.defences, batch, generator(0, "draw"))
    swapped = wrong.swap(fed, generator(0, "swap"))
    assert swapped.labels.tolist() == batch.labels.tolist()
    assert not torch.allclose(swapped.pixels(), fed.pixels())
