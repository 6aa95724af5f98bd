import torch

from gradveil.data import ImageSet
from scripts.ten_classes import CLASSES, choose_classes, take_classes


def test_the_classes_are_drawn_once_and_in_order() -> None:
    chosen = choose_classes(100)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == CLASSES
    assert chosen == choose_classes(100)


def test_images_of_the_chosen_classes_are_numbered_anew() -> None:
    images = torch.arange(6, dtype=torch.uint8).view(6, 1, 1, 1)
    taken, labels = take_classes(ImageSet(images, torch.tensor([5, 2, 9, 5, 0, 2])), [2, 5])
    assert taken.flatten().tolist() == [0, 1, 3, 5]
    assert labels.tolist() == [1, 0, 1, 0]
