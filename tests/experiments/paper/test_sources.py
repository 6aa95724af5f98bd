from pathlib import Path

import numpy as np
import pytest
import torch

from gradveil.errors import DataError
from gradveil.experiments.paper.scales import CIFAR, SAMPLE, TINY_100
from gradveil.experiments.paper.sources import SMALL_TEST, SMALL_TRAIN, load_images
from gradveil.study import silent


def test_the_small_sample_is_balanced_and_always_the_same() -> None:
    first, second = (load_images(SAMPLE, None, silent) for _ in range(2))
    assert (len(first.train), len(first.test)) == (SMALL_TRAIN, SMALL_TEST)
    assert torch.equal(first.test.images, second.test.images)
    assert first.train.labels.bincount().tolist() == [SMALL_TRAIN // 10] * 10
    assert first.test.labels.bincount().min() >= SMALL_TEST // 10 - 1


def test_files_of_numpy_in_the_data_root_are_taken_under_the_name_of_the_data_set(tmp_path: Path) -> None:
    images, labels = np.zeros((4, 32, 32, 3), dtype=np.uint8), np.arange(4)
    images[0] = 255
    for name in ("cifar100_train_part0", "cifar100_train_part1", "cifar100_test"):
        np.savez(tmp_path / f"{name}.npz", images=images, labels=labels)
    found = load_images(CIFAR, tmp_path, silent)
    assert (found.name, len(found.train), len(found.test)) == (CIFAR, 8, 4)


def test_missing_images_are_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="name their folder with --data-root"):
        load_images(TINY_100, tmp_path, silent)
