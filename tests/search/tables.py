"""Scores that come from a table, to try strategies on many made-up worlds."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradveil.scores.registry import EXACT, FINE, ROUGH
from gradveil.search import SearchSettings
from gradveil.search.candidates import Candidate
from gradveil.search.score_journal import ScoreSource


class ScoreTable(ScoreSource):
    """Look scores up in a table, policies×images for each rule, and count what they would have cost."""

    def __init__(self, settings: SearchSettings, tables: dict[str, Tensor], accuracy_scores: Tensor) -> None:
        super().__init__(settings, settings.images)
        self.tables = tables
        self.accuracy_table = {f"{row}": float(value) for row, value in enumerate(accuracy_scores.tolist())}
        self.cost = 0
        self.asked: set[tuple[str, str, int]] = set()
        self.events: list[tuple[str, dict[str, object]]] = []

    def privacy_scores(self, policies: Sequence[str], places: Sequence[int], rule: str, what: str = "") -> Tensor:  # noqa: ARG002
        new = {(rule, policy, place) for policy in policies for place in places} - self.asked
        self.asked |= new
        self.cost += len(new) * self.kind.gradients(rule)
        rows = torch.tensor([int(policy) for policy in policies], dtype=torch.int64)
        return self.tables[rule][rows][:, torch.tensor(list(places), dtype=torch.int64)]

    def accuracy_scores(self, policies: Sequence[str], what: str = "") -> list[float]:  # noqa: ARG002
        self.known_accuracy |= {policy: self.accuracy_table[policy] for policy in policies}
        return [self.accuracy_table[policy] for policy in policies]

    def note(self, event: str, **facts: object) -> None:
        self.events.append((event, facts))


def make_world(
    source: torch.Generator,
    candidates: int = 200,
    images: int = 40,
    spread: float = 0.09,
    error: float = 0.11,
    skewed: bool = False,
    labels: Tensor | None = None,
) -> dict[str, Tensor]:
    """Make up scores: a mean of each policy, an effect of each image, an error of each pair; rules are nearly exact.

    With `labels`, one for each image, every policy also has an effect on each class, as wide as the policies' means.
    """
    means = 0.6 + spread * torch.randn(candidates, 1, generator=source, dtype=torch.float64)
    noise = torch.randn(candidates, images, generator=source, dtype=torch.float64)
    if skewed:
        # Most images alike, a few far off to one side: standardised log-normal errors.
        noise = (noise.mul(0.8).exp() - 1.377) / 1.304
    widths = 0.6 + 0.8 * torch.rand(candidates, 1, generator=source, dtype=torch.float64)
    common = 0.1 * torch.randn(1, images, generator=source, dtype=torch.float64)
    exact = means + common + error * widths * noise
    if labels is not None:
        effects = spread * torch.randn(candidates, int(labels.max()) + 1, generator=source, dtype=torch.float64)
        exact = exact + effects[:, labels]
    tables = {"trapezoid-21": exact}
    for rule, (policy, image) in {ROUGH: (0.02, 0.03), FINE: (0.008, 0.02), EXACT: (0.003, 0.0075)}.items():
        off = policy * torch.randn(candidates, 1, generator=source, dtype=torch.float64)
        tables[rule] = exact + off + image * torch.randn(candidates, images, generator=source, dtype=torch.float64)
    return tables


def number_candidates(count: int) -> list[Candidate]:
    """Make candidates that are called by their rows."""
    return [Candidate(str(row), str(row), (str(row),)) for row in range(count)]
