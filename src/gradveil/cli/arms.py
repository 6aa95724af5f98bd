"""What `--attack`, `--defence` and `--policy` name: attacks and arms, ours and a person's own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gradveil.attacks import ATTACKS, Attack, find_attack
from gradveil.cli.policy_files import read_arm, read_policy
from gradveil.cli.runs import is_own_part
from gradveil.defences import Arm, Defence, parse_arm
from gradveil.errors import SettingsError
from gradveil.own_code import OwnObject, find_own, is_own


@dataclass(frozen=True, eq=False)
class NamedObjects:
    """Attacks by name, defences of a person's own by name, and the SHA-256 of the files that own code is in."""

    attacks: Mapping[str, Attack]
    defences: Mapping[str, Defence]
    sources: dict[str, str]

    def arm(self, text: str) -> Arm:
        """Make the arm that a text names."""
        return parse_arm(text, self.defences)

    def by_their_words(self) -> dict[str, Defence]:
        """Return the own defences by what files write of them, to read a capsule that tells of one."""
        return {str(defence): defence for defence in self.defences.values()}


def find_named(attacks: Sequence[str], arms: Iterable[str]) -> NamedObjects:
    """Find all that options name; what is not ours is imported."""
    others = [name for name in attacks if is_own(name) and name not in ATTACKS]
    own_attacks = {name: find_own("attack", name, Attack) for name in others}  # type: ignore[type-abstract]
    parts = dict.fromkeys(part for arm in arms for part in arm.split(",") if is_own_part(part))
    own_defences = {part: find_own("defence", part, Defence) for part in parts}  # type: ignore[type-abstract]
    found = {name: own_attacks[name].value if name in own_attacks else find_attack(name) for name in attacks}
    return NamedObjects(found, values_of(own_defences), {**sources_of(own_attacks), **sources_of(own_defences)})


def values_of(objects: Mapping[str, OwnObject[Defence]]) -> dict[str, Defence]:
    return {name: one.value for name, one in objects.items()}


def sources_of(objects: Mapping[str, OwnObject[Attack]] | Mapping[str, OwnObject[Defence]]) -> dict[str, str]:
    return {name: one.sha256 for name, one in objects.items()}


def write_arm(base: bool, policy: str, others: Sequence[str]) -> str:
    """Write the base augmentation, the policy and the other defences as one arm."""
    chosen = read_policy(policy)
    parts = [*([] if chosen == "none" else [f"policy:{chosen}"]), *map(read_arm, others)]
    if not parts:
        return "crop-flip" if base else "none"
    return ",".join(parts if base else [*parts, "no-base"])


def refuse_changed_models(defences: Mapping[str, Defence]) -> None:
    """Refuse defences of a person's own that change the model: no file could say how to build it again."""
    for name, defence in defences.items():
        if "model" in defence.hooks:
            raise SettingsError(
                f"defence '{name}' changes the model, and a checkpoint cannot name it: put the change into your model"
            )
