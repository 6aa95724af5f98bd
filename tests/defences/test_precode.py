"""PRECODE: a bottleneck that draws."""

from dataclasses import replace

import torch
from torch.nn import functional as F

from gradveil.defences import Precode, compute_defended, list_edits, parse_defence
from gradveil.defences.precode import read_draw
from gradveil.gradients import gradient, gradients_apart
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.rng import generator, global_state_from
from gradveil.types import Batch, LocalTraining, Update

SPEC = ModelSpec("mlp", (1, 9, 9), 4, (0.5,), (0.5,))


def batch(count: int = 3) -> Batch:
    return Batch(torch.rand(count, 1, 9, 9, generator=generator(0)), torch.arange(count))


def test_a_bottleneck_stands_before_the_last_layer() -> None:
    before = SPEC.build(generator(0))
    after = parse_defence("precode:width=5").model(before, generator(0))
    assert list_edits(before, after) == ("Linear → Sequential(Bottleneck, Linear): head",)
    again = parse_defence("precode:width=5").model(before, generator(0))
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in after.state_dict().items())


def test_gradients_are_drawn_and_predictions_are_not() -> None:
    model = Precode(5).model(SPEC.build(generator(0)), generator(0)).eval()
    one, other = (compute_defended([])(model, CrossEntropy(), batch(), generator(seed)) for seed in (0, 1))
    assert not torch.allclose(one["head.1.weight"], other["head.1.weight"])
    with torch.no_grad():
        assert torch.equal(model(batch().pixels()), model(batch().pixels()))


def test_the_divergence_is_part_of_the_loss() -> None:
    """Under a loss that is constant, what is left is the slope of β times the divergence."""
    model = Precode(5, 0.25).model(SPEC.build(generator(0)), generator(0)).eval()
    found = gradient(model, lambda logits, _: 0 * logits.sum(), batch().pixels(), batch().labels)
    encoder = model.get_submodule("head.0.encode")
    with torch.no_grad():
        hidden = model.get_submodule("body")(model.get_submodule("normalise")(batch().pixels()))
    mean, spread = encoder(hidden).chunk(2, dim=-1)
    normal = torch.distributions.Normal(mean, F.softplus(spread - 1.25))
    standard = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    divergence = torch.distributions.kl_divergence(normal, standard).sum(-1).mean()
    (expected,) = torch.autograd.grad(0.25 * divergence, [encoder.get_parameter("bias")])
    torch.testing.assert_close(found["head.0.encode.bias"], expected)


def test_the_bottleneck_works_for_many_clients_at_once() -> None:
    model = Precode(5).model(SPEC.build(generator(0)), generator(0)).eval()
    images = batch(4).pixels().view(2, 2, 1, 9, 9).requires_grad_()
    with global_state_from(generator(0)):
        found = gradients_apart(model, CrossEntropy(), images, batch(4).labels.view(2, 2))
    (slope,) = torch.autograd.grad(sum(tensor.square().sum() for tensor in found.values()), images)  # type: ignore[arg-type]
    assert torch.isfinite(slope).all()
    assert slope.any()


def test_the_draw_is_read_off_the_gradient_of_one_image_and_of_nothing_else() -> None:
    defence = Precode(5)
    model = defence.model(SPEC.build(generator(0)), generator(0)).eval()

    def update(count: int) -> Update:
        return Update(compute_defended([])(model, CrossEntropy(), batch(count), generator(3)), count)

    one = update(1)
    draw = read_draw(model, one)
    assert draw is not None
    with global_state_from(generator(3)):
        expected = torch.randn(1, 5)
    torch.testing.assert_close(draw, expected, rtol=1e-2, atol=1e-3)
    assert read_draw(model, update(2)) is None
    assert read_draw(model, replace(one, local=LocalTraining(steps=1))) is None
    noised = {
        name: tensor + 0.1 * torch.randn(tensor.shape, generator=generator(1)) for name, tensor in one.tensors.items()
    }
    assert read_draw(model, replace(one, tensors=noised)) is None
    assert read_draw(SPEC.build(generator(0)), one) is None


def test_a_model_that_repeats_the_draw_gives_the_same_gradient_and_leaves_the_other_alone() -> None:
    model = Precode(5).model(SPEC.build(generator(0)), generator(0)).eval()
    released = compute_defended([])(model, CrossEntropy(), batch(1), generator(3))
    repeating = Precode(5).known_model(model, Update(released, 1))
    again = compute_defended([])(repeating, CrossEntropy(), batch(1), generator(9))
    for name, tensor in released.items():
        torch.testing.assert_close(again[name], tensor, rtol=1e-2, atol=1e-4)
    other = compute_defended([])(model, CrossEntropy(), batch(1), generator(9))
    assert not torch.allclose(other["head.1.weight"], released["head.1.weight"])
