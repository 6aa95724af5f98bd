"""Which way round a picture is, where the update cannot tell: under some defences views of an image match as well."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradveil.attacks.ranking import Comparison
from gradveil.attacks.starts import find_class, public_of
from gradveil.defences import known_views
from gradveil.types import Reconstruction, Task, Update

AS_WELL = 1.02
"""Up to this ratio of the matching loss a view explains the update as well; turning by 90° changes rounding alone."""
SLACK = 1e-6


def orient(task: Task, updates: Sequence[Update], results: Sequence[Reconstruction]) -> list[Reconstruction]:
    """Turn pictures to the view that is most like public images of their class, among those that match as well."""
    views = known_views(task.known_defences)
    if views is None or task.public is None or len(task.public) == 0:
        return list(results)
    comparison = Comparison(task)
    found = []
    for update, result in zip(updates, results, strict=True):
        if result.status == "ok" and result.transformed is None:
            for place in range(len(result.images)):
                turn_image(comparison, update, result.images, views(result.images[place]), result.labels, place)
        found.append(result)
    return found


def turn_image(
    comparison: Comparison, update: Update, images: Tensor, views: Sequence[Tensor], labels: Tensor, place: int
) -> None:
    """Replace one image, in place, by the best of its views."""
    bound = AS_WELL * comparison.matching_loss(update, images, labels) + SLACK
    mean = class_mean(comparison.task, labels[place])
    for view in sorted(views, key=lambda one: float((one - mean).square().sum())):
        turned = images.clone()
        turned[place] = view
        if comparison.matching_loss(update, turned, labels) <= bound:
            images.copy_(turned)
            return


def class_mean(task: Task, label: Tensor) -> Tensor:
    """Return the mean of the public images of a class, C×H×W."""
    rows = find_class(task, label)
    return torch.mean(public_of(task).take(rows).pixels(), 0)
