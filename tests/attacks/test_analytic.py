"""Images read off the gradient of a fully-connected layer."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gradveil.attacks import ATTACKS, linear_layers, read_inputs
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.metrics import assign, psnr
from gradveil.rng import generator
from gradveil.types import Batch
from tests.attacks.scenes import make_task, plain_task, release, sample_task, small_model, take, update_of


def test_one_image_is_read_off_a_linear_layer() -> None:
    task = sample_task("mlp")
    for image in range(8):
        result = ATTACKS["analytic"](task, update_of(task, take([image])), generator(0))
        assert float(psnr(result.images, take([image]).pixels())) >= 50
        assert result.matching_loss < 1e-4


def test_images_of_a_batch_are_read_off_where_rows_see_them_alone() -> None:
    task = sample_task("mlp")
    batch = take(range(4))
    result = ATTACKS["analytic"](task, update_of(task, take(range(4))), generator(0))
    rebuilt = result.images[assign(result.images, batch.pixels())]
    assert int((psnr(rebuilt, batch.pixels()) >= 40).sum()) >= 1


def test_features_are_read_all_along_a_stack_of_linear_layers() -> None:
    model = small_model("mlp")
    image = torch.rand(1, 1, 12, 12, generator=generator(1))
    update = update_of(plain_task(model), Batch(image, torch.tensor([2])))
    seen: dict[str, Tensor] = {}
    layers = linear_layers(plain_task(model))
    for name in layers:
        model.get_submodule(name).register_forward_pre_hook(
            lambda _, inputs, name=name: seen.update({name: inputs[0].detach()})
        )
    model(image)
    assert len(layers) == 3
    for name in layers:
        torch.testing.assert_close(read_inputs(update, name).float(), seen[name], rtol=1e-3, atol=1e-4)


def test_a_gradient_of_zeros_is_a_failure_with_a_reason() -> None:
    task = make_task("mlp")
    update = release(task)
    empty = replace(update, tensors={name: torch.zeros_like(tensor) for name, tensor in update.tensors.items()})
    result = ATTACKS["analytic"](task, empty, generator(0))
    assert result.status == "failed"
    assert "is zero" in result.reason
    assert result.images.shape == (1, *task.shape)
    with pytest.raises(KnowledgeError, match="is zero"):
        read_inputs(empty, linear_layers(task)[0])


def test_what_is_not_finite_is_a_failure_with_a_reason() -> None:
    task = make_task("mlp")
    update = release(task)
    broken = replace(update, tensors={name: torch.nan * tensor for name, tensor in update.tensors.items()})
    result = ATTACKS["analytic"](task, broken, generator(0))
    assert (result.status, "not finite" in result.reason) == ("failed", True)


def test_an_update_without_the_layer_is_refused() -> None:
    task = make_task("mlp")
    update = release(task)
    part = replace(update, tensors={name: value for name, value in update.tensors.items() if "bias" not in name})
    with pytest.raises(KnowledgeError, match="lacks"):
        ATTACKS["analytic"](task, part, generator(0))


def test_it_takes_no_steps() -> None:
    with pytest.raises(SettingsError, match="'analytic' takes no steps"):
        ATTACKS["analytic"].with_steps(20)
    with pytest.raises(SettingsError, match="budget of 20 gradients"):
        ATTACKS["analytic"].with_budget(20)
