"""OASIS: which pictures of an image go into its gradient."""

import pytest
import torch

from gradveil.defences import Oasis, compute_defended, guarantee_of, known_views, parse_arm, parse_defence
from gradveil.defences.oasis import rotate, shear
from gradveil.errors import SettingsError
from gradveil.gradients import gradient
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.types import Batch


def batch(count: int = 3) -> Batch:
    return Batch(torch.rand(count, 1, 9, 9, generator=generator(0)), torch.arange(count))


def test_the_gradient_is_the_mean_over_an_image_and_its_turns() -> None:
    model = ModelSpec("mlp", (1, 9, 9), 4, (0.5,), (0.5,)).build(generator(0)).eval()
    released = compute_defended([Oasis()])(model, CrossEntropy(), batch(), generator(0))
    turns = [
        gradient(model, CrossEntropy(), torch.rot90(batch().pixels(), turn, (2, 3)), batch().labels)
        for turn in range(4)
    ]
    for name, tensor in released.items():
        torch.testing.assert_close(tensor, torch.stack([one[name] for one in turns]).mean(0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("kinds", "count"), [("major", 4), ("minor", 4), ("shear", 4), ("hflip+vflip", 3), ("major+shear", 7)]
)
def test_kinds_add_up(kinds: str, count: int) -> None:
    views = known_views(parse_arm(f"oasis:{kinds},no-base").defences)
    assert views is not None
    found = views(batch().pixels())
    assert len(found) == count
    assert torch.equal(found[0], batch().pixels())
    assert all(not torch.equal(one, found[0]) for one in found[1:])
    assert all(float(one.min()) >= 0 and float(one.max()) <= 1 for one in found)


def test_views_of_several_defences_are_views_of_views() -> None:
    views = known_views(parse_arm("oasis:hflip,oasis:vflip,no-base").defences)
    assert views is not None
    assert len(views(batch().pixels())) == 4


def test_warps_move_pixels_as_they_say() -> None:
    square = torch.zeros(1, 1, 5, 5)
    square[0, 0, 0, 2] = 1
    assert torch.equal(rotate(90)(square), torch.rot90(square, 1, (2, 3)))
    assert float(shear(1.0)(square)[0, 0, 0, 4]) + float(shear(1.0)(square)[0, 0, 0, 0]) == 1


def test_views_are_linear_and_differentiable_twice() -> None:
    images = batch().pixels().requires_grad_()
    total = sum((view.square().sum() for view in Oasis(("minor", "shear")).known_views(images)), torch.zeros(()))
    (slope,) = torch.autograd.grad(total, images, create_graph=True)
    (again,) = torch.autograd.grad(slope.square().sum(), images)
    assert again.isfinite().all()
    assert again.any()


def test_images_that_are_not_square_cannot_be_turned() -> None:
    with pytest.raises(SettingsError, match="9×7"):
        Oasis().known_views(torch.rand(1, 1, 9, 7))
    assert len(Oasis(("minor",)).known_views(torch.rand(1, 1, 9, 7))) == 4


def test_dpsgd_makes_no_promise_for_images_with_copies() -> None:
    guarantee = guarantee_of(parse_arm("dpsgd:noise=1:clip=1,oasis,no-base").defences, 0.1, 10)
    assert guarantee is not None
    assert guarantee.epsilon is None
    assert "several gradients" in guarantee.remark


def test_the_default_is_written_short() -> None:
    assert str(parse_defence("oasis")) == "oasis" == str(parse_defence("oasis:major"))
