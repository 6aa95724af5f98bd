"""The gradient of a linear layer as a mixture."""

import torch

from gradveil.attacks import change_noise, count_images
from gradveil.attacks.mixtures import Mixture, count_at
from gradveil.rng import generator
from gradveil.types import ONE_GRADIENT, LocalTraining
from tests.attacks.scenes import make_task, release


def draw(*size: int) -> torch.Tensor:
    return torch.randn(*size, generator=generator(1, *size), dtype=torch.float64)


def test_the_true_directions_solve_the_mixture() -> None:
    slopes, inputs = draw(30, 4), draw(4, 50)
    mixture = Mixture.of(slopes @ inputs, slopes.sum(1), 4)
    directions = torch.linalg.lstsq(mixture.left, slopes * torch.tensor([3.0, -1.0, 0.1, 2.0])).solution
    solved = mixture.solve(directions)
    torch.testing.assert_close(solved.inputs, inputs)
    torch.testing.assert_close(solved.slopes, slopes)


def test_images_are_counted_by_rank() -> None:
    weight = draw(20, 5) @ draw(5, 30)
    assert count_images(weight) == 5
    assert count_images(torch.zeros(3, 4)) == 0
    assert count_images(weight, noise=1e9) == 0


def test_rounding_of_a_weight_change_is_not_counted() -> None:
    task = make_task("mlp")
    local = LocalTraining(steps=1, batch_size=4, learning_rate=0.01)
    gradient, change = (release(task, count=4, local=one) for one in (ONE_GRADIENT, local))
    assert count_at(task, gradient, "body.1") == count_at(task, change, "body.1") == 4
    assert count_images(change.tensors["body.1.weight"]) > 4
    parameter = task.model.get_submodule("body.1").get_parameter("weight")
    assert change_noise(parameter, ONE_GRADIENT) == 0


def test_the_last_layer_shows_fewer_images_than_there_are_classes() -> None:
    task = make_task("lenet-relu")
    assert count_at(task, release(task, count=16), "head") <= task.classes - 1
