"""Make a data set from a person's own torch `Dataset` or `DataLoader`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from gradveil.data.base import DataSet, ImageSet, assemble
from gradveil.data.splits import Split, split_images
from gradveil.errors import DataError

Pairs = Dataset[Any] | DataLoader[Any]


def from_torch(
    train: Pairs,
    test: Pairs | None = None,
    *,
    name: str = "own",
    class_names: Sequence[str] | None = None,
    seed: int = 0,
) -> DataSet:
    """Read (image, label) pairs into a `DataSet`, once and in their order.

    Images are C×H×W or H×W, uint8 or float in [0, 1]; float images are rounded to 8 bits. Labels are whole numbers from
    0. Without `test` a share of each class, drawn from `seed`, becomes the test split. Without `class_names` the
    classes are numbered.
    """
    train_set = read_pairs(train, name)
    test_set = None if test is None else read_pairs(test, name)
    if class_names is None:
        highest = max(int(part.labels.max()) for part in (train_set, test_set) if part is not None)
        class_names = [str(label) for label in range(highest + 1)]
    if test_set is None:
        train_set, test_set = split_images(train_set, Split(seed=seed).draw(train_set.labels))
    return assemble(name, train_set, test_set, tuple(class_names))


def read_pairs(pairs: Pairs, name: str) -> ImageSet:
    """Read every pair; all images must have one shape and one type."""
    images: list[Tensor] = []
    labels: list[int] = []
    for image, label in list_pairs(pairs):
        if not isinstance(image, Tensor) or image.dim() not in (2, 3):
            kind = f"a tensor of shape {tuple(image.shape)}" if isinstance(image, Tensor) else type(image).__name__
            raise DataError(f"data set '{name}' holds {kind} as an image: make it a tensor of shape C×H×W or H×W")
        images.append(image.detach().cpu())
        labels.append(to_label(label, name))
    kinds = {(tuple(image.shape), image.dtype) for image in images}
    if len(kinds) != 1:
        shown = ", ".join(f"{dtype} of {shape}" for shape, dtype in sorted(kinds, key=str)[:3]) or "no images"
        raise DataError(f"data set '{name}' holds {shown}: all images must have one shape and one type")
    pixels = to_bytes(torch.stack(images), name)
    return ImageSet(pixels.unsqueeze(1) if pixels.dim() == 3 else pixels, torch.tensor(labels))


def list_pairs(pairs: Pairs) -> Iterator[tuple[Any, Any]]:
    """Iterate over single images; a `DataLoader` brings batches of them."""
    if isinstance(pairs, DataLoader):
        for batch in pairs:
            yield from zip(batch[0], batch[1], strict=True)
        return
    items: Iterable[Any] = (
        pairs if isinstance(pairs, IterableDataset) else map(pairs.__getitem__, range(size_of(pairs)))
    )
    for item in items:
        yield item[0], item[1]


def size_of(pairs: Any) -> int:
    """Count the items of a map-style data set, which declares its length without a type."""
    return len(pairs)


def to_label(value: Any, name: str) -> int:
    """Read a label: a whole number, or a tensor or array that holds one."""
    try:
        label = int(value)
        if label == value:
            return label
    except (TypeError, ValueError, RuntimeError):
        pass
    raise DataError(f"data set '{name}' holds the label {value!s:.60}: it must be a whole number from 0, the class")


def to_bytes(images: Tensor, name: str) -> Tensor:
    """Round float images in [0, 1] to 8 bits."""
    if images.dtype == torch.uint8:
        return images
    if not images.is_floating_point():
        raise DataError(f"data set '{name}' holds images of {images.dtype}: they must be uint8, or float in [0, 1]")
    low, high = images.min().item(), images.max().item()
    if not (low >= 0 and high <= 1):
        raise DataError(
            f"data set '{name}' holds values from {low:.3g} to {high:.3g}: they must be in [0, 1]; take the "
            "normalisation out of the data set and make it the first layer of the model"
        )
    return (images * 255).round().to(torch.uint8)
