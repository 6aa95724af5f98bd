"""CENSOR: directions at right angles to the gradient, and what they keep of it."""

import pytest
import torch

from gradveil.defences import Censor, Released, compute_defended, guarantee_of, known_release, parse_arm
from gradveil.defences.censor import draw_orthogonal, loss_before, losses_after
from gradveil.gradients import Tensors, gradient
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.types import Batch

SPEC = ModelSpec("mlp", (1, 9, 9), 4, (0.5,), (0.5,))


def batch(count: int = 3) -> Batch:
    return Batch(torch.rand(count, 1, 9, 9, generator=generator(0)), torch.arange(count))


def released(defence: Censor, seed: int = 0) -> Tensors:
    return compute_defended([defence])(SPEC.build(generator(0)).eval(), CrossEntropy(), batch(), generator(seed))


def plain() -> Tensors:
    return gradient(SPEC.build(generator(0)).eval(), CrossEntropy(), batch().pixels(), batch().labels)


def test_every_tensor_is_orthogonal_to_the_true_one_and_as_long() -> None:
    for name, tensor in released(Censor(3)).items():
        true = plain()[name]
        assert abs(float(torch.cosine_similarity(tensor.flatten(), true.flatten(), dim=0))) < 1e-5
        assert float(tensor.norm()) == pytest.approx(float(true.norm()), rel=1e-5)


def test_what_has_no_right_angle_is_not_released() -> None:
    assert not draw_orthogonal(torch.tensor([3.0]), 2, generator(0)).any()
    assert not draw_orthogonal(torch.zeros(4), 2, generator(0)).any()


def test_the_released_one_has_the_least_loss_after_the_step() -> None:
    model = SPEC.build(generator(0)).eval()
    drawn = {name: draw_orthogonal(tensor, 8, generator(3)) for name, tensor in plain().items()}
    reached = losses_after(model, CrossEntropy(), batch(), drawn, 0.5)
    for trial in range(8):
        moved = SPEC.build(generator(0)).eval()
        with torch.no_grad():
            for name, parameter in moved.named_parameters():
                parameter.sub_(0.5 * drawn[name][trial])
        assert float(reached[trial]) == pytest.approx(float(loss_before(moved, CrossEntropy(), batch())), rel=1e-5)
    best = losses_after(model, CrossEntropy(), batch(), {k: v[None] for k, v in released(Censor(8, 0.5)).items()}, 0.5)
    others = [released(Censor(1, 0.5), seed) for seed in range(20)]
    drawn_alone = {name: torch.stack([one[name] for one in others]) for name in others[0]}
    assert float(best) < float(losses_after(model, CrossEntropy(), batch(), drawn_alone, 0.5).mean())


def test_the_authors_rule_can_release_the_true_gradient() -> None:
    """A step so long that no random direction lowers the loss."""
    kept, never = released(Censor(2, 1e3, fallback=1)), released(Censor(2, 1e3))
    assert all(torch.allclose(tensor, plain()[name], atol=1e-6) for name, tensor in kept.items())
    assert not any(torch.allclose(tensor, plain()[name], atol=1e-6) for name, tensor in never.items())


def test_an_attacker_compares_norms_alone() -> None:
    seen, sizes = torch.tensor([[3.0, 4.0, 1.0]]), {"first": 2, "second": 1}
    known = known_release([Censor()], Released(seen, sizes, SPEC.build(generator(0)), 1))
    candidate = torch.tensor([[-10.0, 0.0, 2.0]], requires_grad=True)
    formed = known(candidate, sizes)
    torch.testing.assert_close(formed.detach(), torch.tensor([[6.0, 8.0, 2.0]]))
    (slope,) = torch.autograd.grad(formed.sum(), candidate)
    assert slope.isfinite().all()


def test_dpsgd_makes_no_promise_before_it() -> None:
    guarantee = guarantee_of(parse_arm("dpsgd:noise=1:clip=1,censor,no-base").defences, 0.1, 10)
    assert guarantee is not None
    assert guarantee.epsilon is None
