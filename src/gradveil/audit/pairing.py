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
    labels, truth = result.labels.cpu(), transformed.labels.cpu()
    chosen = torch.zeros(len(transformed), dtype=torch.int64)
    if labels_agree(labels, truth) < 1:
        labels, truth = torch.zeros_like(labels), torch.zeros_like(truth)
    for label in sorted(set(truth.tolist())):
        ours, theirs = ((values == label).nonzero().squeeze(1) for values in (labels, truth))
        chosen[theirs] = ours[assign(images[ours], transformed.pixels().cpu()[theirs])]
    return [take_one(result, int(place)) for place in chosen]


def take_one(result: Reconstruction, place: int) -> Reconstruction:
    part = slice(place, place + 1)
    transformed = None if result.transformed is None else result.transformed[part]
    return replace(result, images=result.images[part], labels=result.labels[part], transformed=transformed)


def labels_agree(restored: Tensor, true: Tensor) -> float:
    """Return the share of labels that were restored, whatever their order.

    >>> labels_agree(torch.tensor([1, 1, 2, 5]), torch.tensor([1, 2, 2, 5]))
    0.75
    """
    size = int(max(restored.max(), true.max())) + 1
    counts = [torch.bincount(labels, minlength=size) for labels in (restored, true)]
    return float(torch.minimum(*counts).sum()) / len(true)
