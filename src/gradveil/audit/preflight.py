"""Before an attack: does the attacker's simulation, at the true images, give the update that was released?"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradveil.client import Simulation
from gradveil.defences import Arm, has_hook
from gradveil.gradients import batch_dependent
from gradveil.rounds import Captured, Round
from gradveil.types import Batch, Place, Reconstruction, Task, Update

ALLOWED = 1e-4
DRAWN_ANEW = "the defence draws anew at every pass, and the attacker assumes one picture for each image"


Match = tuple[float | None, float | None]
"""How far the rebuilt and the true pictures are from explaining a release."""


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


def preflight(task: Task, transformed: Batch, update: Update) -> Preflight:
    """Simulate the update of what the model was fed, and compare.

    Without a defence at release the two must agree: otherwise an attack fails for a reason that protects nobody.
    """
    simulation = Simulation(task.model, task.loss, update.local, task.shape, task.participants)
    ours = simulation(transformed.pixels()[None], transformed.labels[None])
    pairs = [(ours[name][0].detach().flatten(), tensor.flatten()) for name, tensor in update.tensors.items()]
    difference = torch.cat([own - released for own, released in pairs]).norm()
    length = torch.cat([released for _, released in pairs]).norm().clamp(min=1e-30)
    share = float(difference / length)
    notices = (*simulation.approximations, *inspect_model(task.model, update))
    if not share <= ALLOWED:
        notices += (f"the attacker's update at the true images differs from the released one by {share:.2g} of it",)
    return Preflight(share, notices)


def measure_match(captured: Captured, arm: Arm, result: Reconstruction, device: Place) -> Match:
    """Measure how well the rebuilt and the true pictures explain a release.

    The two figures are cosine distances between what the attacker's simulation of the client gives and what was
    released. None where the simulation cannot tell: the attack has no result, the model draws, or T(x) is drawn anew.
    """
    one = captured.round
    if result.status != "ok" or one.model_defences or is_drawn_anew(one, arm):
        return None, None
    task = one.task(None, device)
    simulation = Simulation(task.model, task.loss, one.update.local, task.shape, task.participants)
    truth = captured.transformed().to(device)
    rebuilt = result.images if result.transformed is None else result.transformed
    released = torch.cat([tensor.flatten() for tensor in one.update.to(device).tensors.values()])

    def distance(images: Tensor, labels: Tensor) -> float:
        ours = simulation(images[None], labels[None])
        flat = torch.cat([ours[name][0].detach().flatten() for name in one.update.tensors])
        return 1 - float(torch.nn.functional.cosine_similarity(flat.double(), released.double(), dim=0))

    found = distance(rebuilt.to(device), result.labels.to(device)), distance(truth.pixels(), truth.labels)
    return found if all(map(math.isfinite, found)) else (None, None)


def inspect_model(model: nn.Module, update: Update) -> tuple[str, ...]:
    """Count the layers through which an image depends on the other images of its batch."""
    model.train(update.local.mode == "train")
    names = batch_dependent(model)
    model.eval()
    if not names:
        return ()
    layers = f"{len(names)} layers of batch normalisation use" if len(names) > 1 else "batch normalisation uses"
    return (f"{layers} the statistics of the batch, as in training",)


def find_notices(captured: Captured, arm: Arm, device: Place) -> tuple[str, ...]:
    """Run the check on one captured round; a defence may make the two differ on purpose."""
    update = captured.round.update
    if is_drawn_anew(captured.round, arm):
        return (DRAWN_ANEW,)
    if has_hook(arm.defences, "compute", "release", "model"):
        return ()
    task = captured.round.task(None, device)
    return preflight(task, captured.transformed().to(device), update).notices


def is_drawn_anew(one: Round, arm: Arm) -> bool:
    """Tell whether a client fed an image several times under a defence that draws a new T(x) every time."""
    local, images = one.update.local, one.update.images // one.participants
    fed = local.count_steps(images) * local.size_of(images)
    return local.takes_steps and fed > images and has_hook(arm.defences, "batch")
