"""The honest-but-curious server: it attacks the updates that it captured, round by round."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gradveil.attacks import Attack
from gradveil.audit import AuditReport, load_capsules
from gradveil.capsule import name_capsule
from gradveil.data import DataSet
from gradveil.defences import Defence
from gradveil.errors import DataError
from gradveil.federated.coordinator import CAPSULES

OnProgress = Callable[[str, float], None]


def find_capsules(folder: Path, rounds: Sequence[int]) -> list[Path]:
    """List the capsules of these rounds, in the order of rounds and clients."""
    paths = [path for number in rounds for path in sorted((folder / CAPSULES).glob(pattern_of(number)))]
    if not paths:
        numbers = ", ".join(map(str, rounds))
        raise DataError(f"{folder} holds no capsule of round {numbers}: capture these rounds when you train")
    return paths


def pattern_of(number: int) -> str:
    """Write the names of a round's capsules as a pattern.

    >>> pattern_of(7)
    'round-0007-client-[0-9]*[0-9].safetensors'
    """
    return name_capsule(number, 0).replace("client-00", "client-[0-9]*[0-9]")


def observe(
    folder: Path,
    data: DataSet,
    rounds: Sequence[int],
    attacks: Sequence[str | Attack] | Mapping[str, Attack] = ("standard",),
    *,
    steps: int | None = None,
    together: bool = False,
    model: str | None = None,
    own: Mapping[str, Defence] | None = None,
    code: Mapping[str, str] | None = None,
    arm: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: OnProgress | None = None,
) -> AuditReport:
    """Attack every captured update of these rounds and score it by the truth that the clients kept.

    With `together` the rounds of one client that show as many images of the same labels are attacked as one. Public
    images exclude those of the victims' updates. `own` and `code` are as in `load_capsules` and
    `AuditSettings`; `arm` is what the run calls its defences.
    """
    paths = find_capsules(folder, rounds)
    audit = load_capsules(paths, data, attacks, steps=steps, model=model, seed=seed, together=together, own=own)
    return replace(audit, code=code or {}, arm_name=arm).run(device, progress)
