"""One arm, phase and attack of an audit under way: what is known of it so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gradveil.audit.jobs import Attacked
from gradveil.audit.scoring import Cell, Row, Scorer, join_null
from gradveil.defences import Arm

CellKey = tuple[Arm, str, str]


@dataclass(eq=False)
class CellUnderWay:
    """What is known of one arm, phase and attack so far."""

    arm: str
    phase: str
    attack: str
    rows: list[Row] = field(default_factory=list)
    null: list[float] = field(default_factory=list)
    attacked: list[Attacked] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.arm, self.phase, self.attack

    def add(self, scorer: Scorer, attacked: Sequence[Attacked]) -> None:
        """Score one more round."""
        scored, controls = scorer.score_round(Row(*self.key, 0, 0, "ok"), attacked)
        self.rows += scored
        self.null += join_null(controls)
        self.attacked += attacked

    def drop_pictures(self, frames: int) -> None:
        """Keep the pictures on the way of the worst images only."""
        order = sorted(range(len(self.rows)), key=lambda place: -(self.rows[place].advantage or -math.inf))
        for place in order[frames:]:
            one = self.attacked[place]
            if one.reconstruction.pictures:
                self.attacked[place] = replace(one, reconstruction=replace(one.reconstruction, pictures=()))

    def cell(self) -> Cell:
        """Return what the verdict is made of."""
        return Cell(*self.key, tuple(self.rows), tuple(self.null))


def name_job(kind: str, key: CellKey, group: Sequence[int]) -> str:
    """Name a job for the folder of kept work."""
    return " ".join([kind, key[0].name, *key[1:], *map(str, group)])


def cut(attacked: Sequence[Attacked], size: int) -> list[Sequence[Attacked]]:
    """Cut what was rebuilt into rounds."""
    return [attacked[start : start + size] for start in range(0, len(attacked), size)]
