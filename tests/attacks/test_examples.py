import torch

from gradveil.attacks.examples import Examples, class_means
from gradveil.types import Batch


def test_a_class_without_images_has_the_mean_of_all() -> None:
    images = torch.stack([torch.zeros(1, 2, 2), torch.ones(1, 2, 2)])
    means = class_means(Batch(images, torch.tensor([0, 1])), 3)
    assert means.mean(1).tolist() == [0, 1, 0.5]


def test_ties_of_different_parts_stay_apart() -> None:
    columns = torch.zeros(3, 2)
    part = Examples(columns, columns, columns, columns, torch.tensor([0, 0, 1]))
    assert Examples.join([part, part]).ties.tolist() == [0, 0, 1, 2, 2, 3]
