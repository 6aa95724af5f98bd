"""What an experiment is: what runs, how it renders, and what it decides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.study import Results
from gradveil.experiments.paper.units import Unit
from gradveil.experiments.paper.verdicts import Finding


@dataclass(frozen=True)
class Rendering:
    """A page: lines of Markdown, and pictures by the name of their file."""

    lines: Sequence[str]
    figures: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Material:
    """What a page is made of: the scale, what was run at it, and the folder with the pictures, if there is one."""

    scale: Scale
    results: Results
    folder: Path | None = None


@dataclass(frozen=True)
class Claim:
    """A published statement, and the rule that says whether it holds; the rule was written before results were seen.

    `replication` is what the `second` source says.
    """

    statement: str
    paper: str
    replication: str
    rule: str
    judge: Callable[[Material], Finding]
    second: str = "replication"


@dataclass(frozen=True)
class Experiment:
    """One published table, figure or claim: what runs at a scale, and how it renders; a claim has a verdict too."""

    name: str
    title: str
    units: Callable[[Scale], Sequence[Unit]]
    render: Callable[[Material], Rendering]
    claim: Claim | None = None
