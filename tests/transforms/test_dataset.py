import pickle
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from gradveil.errors import SettingsError
from gradveil.rng import generator
from gradveil.transforms import BaseAugmentation, PolicyDataset, parse_policy, pillow

HYBRID = parse_policy("3-1-7+43-18-18")
IMAGES = torch.randint(256, (30, 3, 8, 8), generator=generator(0)).to(torch.uint8)


def make_dataset(seed: int = 7) -> PolicyDataset:
    return PolicyDataset(TensorDataset(IMAGES, torch.arange(30)), HYBRID, seed, BaseAugmentation())


def epochs(dataset: PolicyDataset, numbers: list[int], **options: Any) -> list[Tensor]:
    """Read the given epochs through one DataLoader."""
    loader = DataLoader(dataset, batch_size=8, **options)
    read = []
    for number in numbers:
        dataset.set_epoch(number)
        read.append(torch.cat([images for images, _ in loader]))
    return read


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("persistent", [False, True], ids=["fresh", "persistent"])
def test_any_number_of_workers_gives_the_same_images(workers: int, persistent: bool) -> None:
    alone = epochs(make_dataset(), [0, 1, 2])
    shared = epochs(make_dataset(), [0, 1, 2], num_workers=workers, persistent_workers=persistent)
    for ours, theirs in zip(alone, shared, strict=True):
        assert torch.equal(ours, theirs)


def test_resumed_epoch_gives_the_same_images() -> None:
    whole = epochs(make_dataset(), [0, 1, 2])
    resumed = epochs(pickle.loads(pickle.dumps(make_dataset())), [2], num_workers=2)
    assert torch.equal(resumed[0], whole[2])
    dataset = make_dataset()
    dataset.set_epoch(2)
    assert torch.equal(torch.stack([dataset[index][0] for index in range(20, 30)]), whole[2][20:])


def test_epochs_images_and_seeds_draw_apart() -> None:
    first, second = epochs(make_dataset(), [0, 1])
    assert not torch.equal(first, second)
    assert not torch.equal(first, epochs(make_dataset(8), [0])[0])
    same = PolicyDataset(TensorDataset(IMAGES[:1].expand(30, -1, -1, -1)), HYBRID, 7)
    assert len({tuple(same[index][0].flatten().tolist()) for index in range(30)}) > 5


def test_shuffled_reading_gives_each_image_its_draw() -> None:
    whole = epochs(make_dataset(), [0])[0]
    loader = DataLoader(make_dataset(), batch_size=7, shuffle=True, generator=generator(1))
    for images, indices in loader:
        assert torch.equal(images, whole[indices])


def test_pil_images_of_different_sizes_stay_pil_images() -> None:
    pictures = [pillow.to_image(IMAGES[0]), Image.new("L", (9, 5), 30), pillow.to_image(IMAGES[1])]
    dataset = PolicyDataset([(picture, index, "kept") for index, picture in enumerate(pictures)], HYBRID, 0)
    batch = dataset.__getitems__([2, 1, 0])
    for (image, label, word), index in zip(batch, (2, 1, 0), strict=True):
        assert isinstance(image, Image.Image)
        assert (image.mode, image.size, label, word) == (pictures[index].mode, pictures[index].size, index, "kept")
        assert image.tobytes() == dataset[index][0].tobytes()


def test_last_item_is_the_same_counted_from_either_end() -> None:
    assert torch.equal(make_dataset()[-1][0], make_dataset()[29][0])
    assert len(make_dataset()) == 30


def test_nonsense_is_refused() -> None:
    with pytest.raises(SettingsError, match="epoch -1: give 0 or more"):
        make_dataset().set_epoch(-1)
    with pytest.raises(SettingsError, match="seed -1 is out of range"):
        make_dataset(-1)
