"""What several clients release together, and which rebuilt image is of which of them."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradveil.metrics import assign
from gradveil.types import Batch, Reconstruction, Update


def aggregate(updates: Sequence[Update]) -> Update:
    """Take the mean of clients' updates of equally many images: all that secure aggregation leaves to the server."""
    names = updates[0].tensors
    mean = {name: torch.stack([update.tensors[name] for update in updates]).mean(0) for name in names}
    labels = [update.labels for update in updates if update.labels is not None]
    known = torch.cat(labels) if len(labels) == len(updates) else None
    return replace(updates[0], tensors=mean, images=sum(update.images for update in updates), labels=known)


def share_out(found: Reconstruction, fed: Batch) -> list[Reconstruction]:
    """Give each true image the rebuilt one that stands for it: the best pairing, within a label if labels agree."""
    if len(fed) == 1 or found.status != "ok":
        return [found] * len(fed)
    images = (found.images if found.fed is None else found.fed).cpu()
    labels, truth = found.labels.cpu(), fed.labels.cpu()
    chosen = torch.zeros(len(fed), dtype=torch.int64)
    agree = torch.equal(labels.sort().values, truth.sort().values)
    if not agree:
        labels, truth = torch.zeros_like(labels), torch.zeros_like(truth)
    for label in sorted(set(truth.tolist())):
        ours, theirs = ((values == label).nonzero().squeeze(1) for values in (labels, truth))
        chosen[theirs] = ours[assign(images[ours], fed.pixels().cpu()[theirs])]
    return [take_one(found, int(place)) for place in chosen]


def take_one(found: Reconstruction, place: int) -> Reconstruction:
    part = slice(place, place + 1)
    guess = None if found.fed is None else found.fed[part]
    return replace(found, images=found.images[part], labels=found.labels[part], fed=guess)


def join(batches: Sequence[Batch]) -> Batch:
    return Batch(torch.cat([batch.pixels() for batch in batches]), torch.cat([batch.labels for batch in batches]))
