"""What came of a round: how many replies were valid, and which were dropped for what reason."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gradveil.errors import GradveilError

SHOWN = 3


@dataclass(frozen=True)
class Dropped:
    """A reply that was not used, or did not come; `client` is None if the node never said which one it is."""

    client: int | None
    reason: str

    def __str__(self) -> str:
        return f"{'an unknown client' if self.client is None else f'client {self.client}'}: {self.reason}"


@dataclass(frozen=True)
class RoundOutcome:
    """One round: how many replies were valid, which were dropped, and the mean loss that clients report."""

    round: int
    valid: int
    dropped: tuple[Dropped, ...]
    loss: float | None
    test_accuracy: float | None = None

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "RoundOutcome":
        return cls(**{**record, "dropped": tuple(Dropped(**one) for one in record["dropped"])})


class TooFewRepliesError(GradveilError):
    """A round with too few valid replies; the run stops."""

    def __init__(self, outcome: RoundOutcome, clients: int, needed: int) -> None:
        reasons = "; ".join(map(str, outcome.dropped[:SHOWN]))
        more = f"; and {len(outcome.dropped) - SHOWN} more" if len(outcome.dropped) > SHOWN else ""
        super().__init__(
            f"round {outcome.round} stopped: {outcome.valid} of {clients} replies are valid and {needed} are needed "
            f"({reasons}{more}); mend the clients and go on with --resume"
        )
