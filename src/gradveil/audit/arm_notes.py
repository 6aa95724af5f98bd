"""What the reader of an audit has to know of an arm: its defences, its model, its guarantees."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gradveil.attacks import Attack
from gradveil.defences import (
    Arm,
    Defence,
    Guarantee,
    build_defended,
    guarantee_of,
    list_edits,
)
from gradveil.models import ModelSpec
from gradveil.privacy import CHANCE, success_bound
from gradveil.rng import generator


@dataclass(frozen=True)
class ArmNotes:
    """An arm in full.

    `training` is what differential privacy promises for the whole training, `released` for the one release of one
    image that is attacked, and `bound` the most that any attacker can succeed from that release where chance is 1%.
    `used` says of each defence that the attacker is told of what it makes use of.
    """

    defences: tuple[str, ...]
    edits: tuple[str, ...]
    training: Guarantee | None
    released: Guarantee | None
    bound: float | None
    used: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Put everything that is not in the arm's name into words."""
        lines = [f"the model is changed: {edit}" for edit in self.edits]
        if self.training is not None:
            lines.append(f"training: {self.training}")
        if self.released is not None:
            lines.append(f"the release that is attacked: {self.released}")
        if self.bound is not None:
            lines.append(f"what succeeds by chance in {CHANCE:.0%} succeeds from it in at most {self.bound:.1%}")
        for defence, use in self.used.items():
            lines.append(f"the attacker is told of {defence} and uses {use}")
        return lines

    def to_record(self) -> dict[str, Any]:
        """Return the notes as they stand in JSON."""
        return asdict(self)


def describe_arm(
    arm: Arm, spec: ModelSpec, seed: int, training: Guarantee | None, attacks: Iterable[Attack]
) -> ArmNotes:
    """Collect what there is to say of an arm.

    `training` is what its training guarantees, `attacks` are those of an attacker who is told of the defences.
    """
    edits = list_edits(spec.build(generator(seed, "model")), build_defended(spec, arm.defences, seed))
    released = guarantee_of(arm.defences, 1.0, 1)
    told = list(attacks)
    return ArmNotes(
        tuple(map(str, arm.defences)),
        edits,
        training,
        released,
        success_bound(released.noise) if released is not None and released.epsilon is not None else None,
        {str(defence): describe_use(defence, told) for defence in arm.defences if told},
    )


def describe_use(defence: Defence, attacks: Sequence[Attack]) -> str:
    """Say what these attacks make use of; only some look through a policy or weigh noise."""
    if defence.known_policies() is not None and not any(attack.inverts_policy for attack in attacks):
        return "nothing, because none of the attacks looks through a policy"
    if defence.deviation(1) > 0 and not any(attack.weighs_noise for attack in attacks):
        return "nothing, because none of the attacks weighs noise"
    return defence.used
