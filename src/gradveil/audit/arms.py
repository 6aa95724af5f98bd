"""What the reader of an audit has to know of an arm: its defences, its model, its guarantees."""

from dataclasses import asdict, dataclass
from typing import Any

from gradveil.audit.cells import build_defended
from gradveil.audit.settings import AuditSettings
from gradveil.defences import Arm, Guarantee, guarantee_of, list_edits, success_bound
from gradveil.defences.guarantee import CHANCE
from gradveil.models import ModelSpec
from gradveil.rng import generator


@dataclass(frozen=True)
class ArmNotes:
    """An arm in full.

    `training` is what differential privacy promises for the whole training, `released` for the one release of one
    image that is attacked, and `bound` the most that any attacker can succeed from that release where chance is 1%.
    """

    defences: tuple[str, ...]
    edits: tuple[str, ...]
    training: Guarantee | None
    released: Guarantee | None
    bound: float | None

    def lines(self) -> list[str]:
        """Put everything that is not in the arm's name into words."""
        lines = [f"the model is changed: {edit}" for edit in self.edits]
        if self.training is not None:
            lines.append(f"training: {self.training}")
        if self.released is not None:
            lines.append(f"the release that is attacked: {self.released}")
        if self.bound is not None:
            lines.append(f"what succeeds by chance in {CHANCE:.0%} succeeds from it in at most {self.bound:.1%}")
        return lines

    def to_record(self) -> dict[str, Any]:
        """Give the notes as they stand in JSON."""
        return asdict(self)


def describe_arm(arm: Arm, spec: ModelSpec, settings: AuditSettings, images: int) -> ArmNotes:
    """Collect what there is to say of an arm; `images` is the size of the training split."""
    edits = list_edits(spec.build(generator(settings.seed, "model")), build_defended(spec, arm, settings.seed))
    training = settings.training
    trained = set(settings.phases) != {"init"}
    rate = min(1.0, training.batch_size / images)
    steps = training.steps_per_epoch(images) * training.epochs
    released = guarantee_of(arm.defences, 1.0, 1)
    return ArmNotes(
        tuple(map(str, arm.defences)),
        edits,
        guarantee_of(arm.defences, rate, steps) if trained else None,
        released,
        success_bound(released.noise) if released is not None and released.epsilon is not None else None,
    )
