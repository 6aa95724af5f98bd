"""The audit of a person's own model and data, in one call."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from gradveil.attacks import Attack
from gradveil.audit.audit import Audit
from gradveil.audit.presets import change_settings, find_preset
from gradveil.audit.report import AuditReport
from gradveil.audit.run import OnProgress
from gradveil.audit.settings import AuditSettings
from gradveil.data import find_data
from gradveil.defences import AnyArm, Arm, find_arm, parse_arm
from gradveil.errors import SettingsError
from gradveil.losses import Loss, parse_loss
from gradveil.training import GIVEN, train_enough
from gradveil.workers import Crew

UNDEFENDED = "none"
FRAMES = 3
"""Images of each arm, phase and attack whose way a report shows: the worst ones."""


def audit_model(
    model: nn.Module | str,
    data: Any,
    *,
    loss: str | Loss | nn.Module = "cross-entropy",
    arms: Sequence[AnyArm] | None = None,
    attacks: Sequence[str | Attack] | Mapping[str, Attack] | None = None,
    phases: Sequence[str] | None = None,
    images: int | None = None,
    test: Any = None,
    preset: str = "quick",
    settings: AuditSettings | None = None,
    control: bool = True,
    workers: int | Crew = 1,
    device: str = "cpu",
    progress: OnProgress | None = None,
    seed: int | None = None,
) -> AuditReport:
    """Attack what clients with this model and these images would release, and say what it gives away.

    `model` takes images in [0, 1]; it is attacked with its weights as they are, which is the phase `given`, unless
    `phases` names others: `init` are its weights as well, later ones train a copy. `data` is a DataLoader or Dataset of
    (image, label) pairs, a data set of ours or the name of one; without `test` a fifth of it is held out, and attacked.
    `loss` is that of the training. `arms` are defences, lists of them or texts; `none` is added as the first unless
    `control` is False, to show that the attack works. What is not given comes from `settings`, or else from the
    `preset`.
    """
    base = find_preset(preset) if settings is None else settings
    loaded = find_data(data, test)
    first = (GIVEN,) if isinstance(model, nn.Module) else ("init",)
    if images is None and settings is None:
        # Few images are all attacked; a number that someone asks for is refused if there are fewer.
        images = min(base.images, len(loaded.test))
    given: dict[str, Any] = {"images": images, "seed": seed, "phases": phases or (None if settings else first)}
    changes = {name: value for name, value in given.items() if value is not None}
    if "phases" in changes:
        changes["phases"] = tuple(changes["phases"])
    training = base.training if settings is not None else train_enough(base.training, len(loaded.train))
    changes["training"] = replace(training, loss=name_loss(loss))
    chosen = [find_arm(arm) for arm in (base.arms if arms is None else arms)]
    arms, added = add_control(chosen) if control else (chosen, False)
    prepared = replace(change_settings(base, changes), control=added)
    weights = {GIVEN: clone(model)} if isinstance(model, nn.Module) and GIVEN in prepared.phases else None
    audit = Audit(prepared, data=loaded, model=model, arms=arms, attacks=attacks, weights=weights)
    return audit.run(workers=workers, device=device, progress=progress, frames=FRAMES)


def clone(model: nn.Module) -> dict[str, Tensor]:
    """Copy the weights of a model to the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}


def add_control(arms: Sequence[Arm]) -> tuple[list[Arm], bool]:
    """Put the arm without a defence first; the second part tells whether it was not there."""
    added = all(arm.name != UNDEFENDED for arm in arms)
    others = [arm for arm in arms if arm.name != UNDEFENDED]
    return [parse_arm(UNDEFENDED), *others], added


def name_loss(loss: str | Loss | nn.Module) -> str:
    """Write a loss as the settings hold it; torch's own cross-entropy is understood."""
    if isinstance(loss, nn.CrossEntropyLoss) and loss.weight is None and loss.reduction == "mean":
        smoothing = loss.label_smoothing
        return f"cross-entropy:smoothing={smoothing:g}" if smoothing else "cross-entropy"
    if isinstance(loss, nn.Module):
        raise SettingsError(
            f"the loss {loss} is not one that the attacker can simulate: give nn.CrossEntropyLoss without class weights"
        )
    return str(parse_loss(str(loss)))
