"""From the options of `gradveil audit` to its settings, and to an audit that is ready to run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradveil.audit import Audit, AuditSettings
from gradveil.cli.arms import NamedObjects
from gradveil.cli.image_choice import is_list_of_places, read_places
from gradveil.cli.options import count
from gradveil.cli.policy_files import read_arm
from gradveil.cli.runs import is_own_part, say_how_to_resume
from gradveil.data import DataSet
from gradveil.defences import expand_arms
from gradveil.errors import SettingsError
from gradveil.training import GIVEN, load_given, train_enough

UNDEFENDED = "none"


def given(**options: Any) -> dict[str, Any]:
    """Leave out options that were not given."""
    return {name: value for name, value in options.items() if value is not None}


def budgeted(budget: float | None, stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """Take the gradients that a budget came to when the unfinished audit was begun; they are not measured again."""
    before = {} if stored is None else stored["settings"]
    same = budget is not None and before.get("budget") == budget
    return {"budget": budget, "gradients": before["gradients"] if same else None}


def changed(settings: Any, changes: Mapping[str, Any]) -> Any:
    """Change a value of settings by the options that were given; None if none was."""
    wanted = given(**changes)
    return replace(settings, **wanted) if wanted else None


def choose_arms(defences: Sequence[str] | None, policies: Sequence[str] | None, no_control: bool) -> dict[str, Any]:
    """Name the arms, the one without a defence first; `control` says that nobody asked for that one."""
    asked = expand_arms(map(read_arm, [*(defences or ()), *(f"policy:{text}" for text in policies or ())]))
    if not asked:
        return {}
    if no_control:
        return {"arms": asked, "control": False}
    others = [arm for arm in asked if arm != UNDEFENDED]
    return {"arms": (UNDEFENDED, *others), "control": UNDEFENDED not in asked}


def choose_phases(phases: Sequence[str] | None, checkpoint: Path | None) -> tuple[str, ...] | None:
    """Name the phases: with a checkpoint that of its weights, unless others are named beside it."""
    if checkpoint is None:
        return None if phases is None else tuple(phases)
    if phases is not None and GIVEN not in phases:
        raise SettingsError(f"--checkpoint is the phase '{GIVEN}': leave out --phase, or name '{GIVEN}' as well")
    return (GIVEN,) if phases is None else tuple(phases)


def choose_images(text: str | None) -> dict[str, Any]:
    """Read a number of images, or their places."""
    if text is None:
        return {}
    numbers = read_places(text)
    return {"images": len(numbers), "places": numbers} if is_list_of_places(text) else {"images": numbers[0]}


def shrink(settings: AuditSettings, data: DataSet, say: Callable[[str], None]) -> AuditSettings:
    """Attack as many images as there are if more are asked for: whole rounds of them."""
    size = settings.images_per_round
    fitting = len(data.test) // size * size
    if settings.places or settings.images <= len(data.test) or not fitting:
        return settings
    say(f"{data.name} has {count(len(data.test), 'test image')}: {fitting} are attacked, not {settings.images}.")
    return replace(settings, images=fitting)


def prepare(
    settings: AuditSettings, data: DataSet, named: NamedObjects, model: str | None, enough: bool, own_loss: bool
) -> Audit:
    """Load the weights; `enough` raises too few epochs, `own_loss` takes the loss that a checkpoint names."""
    if enough:
        settings = replace(settings, training=train_enough(settings.training, len(data.train)))
    arms = [named.arm(text) for text in settings.arms]
    if settings.checkpoint is None:
        return Audit(settings, data=data, arms=arms, attacks=named.attacks)
    weights = load_given(Path(settings.checkpoint), model, data)
    if own_loss:
        settings = replace(settings, training=replace(settings.training, loss=str(weights.loss)))
    return Audit(
        settings, data=data, model=weights.spec, arms=arms, attacks=named.attacks, weights={GIVEN: weights.weights}
    )


def check_code(folder: Path, stored: AuditSettings, words: Sequence[str | None]) -> None:
    """Refuse to import what a file names: a person names their own code again, and is told how."""
    needed = {name for name in (stored.model, *stored.attacks) if ":" in name}
    needed |= {part for arm in stored.arms for part in arm.split(",") if is_own_part(part)}
    said = {part for text in words if text is not None for part in text.split(",")}
    if needed - said:
        line = say_how_to_resume("audit", folder, name_code(stored))
        raise SettingsError(f"the audit in {folder} uses code of your own, which a file cannot name: write {line}")


def name_code(settings: AuditSettings) -> list[str]:
    """Write the options that name code of a person's own; attacks and arms are named all or not at all."""
    words = ["--model", settings.model] if ":" in settings.model else []
    if any(":" in name for name in settings.attacks):
        words += [word for name in settings.attacks for word in ("--attack", name)]
    if any(is_own_part(part) for arm in settings.arms for part in arm.split(",")):
        asked = [arm for arm in settings.arms if arm != UNDEFENDED or not settings.control]
        words += [word for arm in asked for word in ("--defence", arm)]
        words += [] if UNDEFENDED in settings.arms else ["--no-control"]
    return words
