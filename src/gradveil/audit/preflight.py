"""Before an attack: is the attacker's model the client's, and does anything random stand in the way?"""

from dataclasses import dataclass

import torch
from torch import nn

from gradveil.client import local_update
from gradveil.types import Batch, Task, Update

ALLOWED = 1e-4
DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True)
class Preflight:
    """How far the attacker's update at the true images is from the released one, and what was noticed on the way.

    `difference` is the norm of the difference as a share of the norm of the released update.
    """

    difference: float
    notices: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return self.difference <= ALLOWED


def preflight(task: Task, batch: Batch, update: Update) -> Preflight:
    """Compute the update of `batch`, as it was fed to the model, anew and compare; for the audit only.

    Without a defence at release the two must agree: otherwise an attack fails for a reason that protects nobody.
    """
    again = local_update(task.model, task.loss, batch, update.local_steps)
    released, ours = (torch.cat([one.tensors[name].flatten() for name in update.tensors]) for one in (update, again))
    difference = float((ours - released).norm() / released.norm().clamp(min=1e-30))
    notices = tuple(inspect_model(task.model))
    if not difference <= ALLOWED:
        notices += (
            f"the attacker's update at the true images differs from the released one by {difference:.2g} of it",
        )
    return Preflight(difference, notices)


def inspect_model(model: nn.Module) -> list[str]:
    """Name the layers that make a gradient depend on chance or on the other images of a batch."""
    notices = []
    for name, layer in model.named_modules():
        if isinstance(layer, DROPOUT) and layer.training and layer.p > 0:
            notices.append(f"dropout '{name}' is active: every gradient is drawn anew")
        if isinstance(layer, BATCH_NORM) and (layer.training or not layer.track_running_stats):
            notices.append(f"batch normalisation '{name}' uses the statistics of the batch, as in training")
    return notices
