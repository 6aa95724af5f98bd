"""Which rebuilt image of a round is of which true image, and which labels were right."""

from dataclasses import replace

import torch
from torch import Tensor

from gradveil.metrics import assign
from gradveil.types import Batch, Reconstruction


def share_out(result: Reconstruction, transformed: Batch) -> list[Reconstruction]:
    """Pair each true image with a rebuilt one: the best pairing, within a label if the labels agree."""
    if len(transformed) == 1 or result.status != "ok":
        return [result] * len(transformed)
    images = (result.images if result.transformed is None else result.transformed).cpu()
    chosen = pair_places(images, result.labels.cpu(), transformed.pixels().cpu(), transformed.labels.cpu())
    return [take_one(result, int(place)) for place in chosen]


def pair_places(guesses: Tensor, labels: Tensor, targets: Tensor, true: Tensor) -> Tensor:
    """Find the place of the guess for each target: the best pairing, within a label if the labels agree."""
    chosen = torch.zeros(len(targets), dtype=torch.int64)
    if labels_agree(labels, true) < 1:
        labels, true = torch.zeros_like(labels), torch.zeros_like(true)
    for label in sorted(set(true.tolist())):
        ours, theirs = ((values == label).nonzero().squeeze(1) for values in (labels, true))
        chosen[theirs] = ours if len(ours) == 1 else ours[assign(guesses[ours], targets[theirs])]
    return chosen


def take_one(result: Reconstruction, place: int) -> Reconstruction:
    part = slice(place, place + 1)
    transformed = None if result.transformed is None else result.transformed[part]
    pictures = tuple((step, picture[part]) for step, picture in result.pictures)
    labels = result.labels[part]
    return replace(result, images=result.images[part], labels=labels, transformed=transformed, pictures=pictures)


def labels_agree(restored: Tensor, true: Tensor) -> float:
    """Return the share of labels that were restored, whatever their order.

    >>> labels_agree(torch.tensor([1, 1, 2, 5]), torch.tensor([1, 2, 2, 5]))
    0.75
    """
    size = int(max(restored.max(), true.max())) + 1
    counts = [torch.bincount(labels, minlength=size) for labels in (restored, true)]
    return float(torch.minimum(*counts).sum()) / len(true)
