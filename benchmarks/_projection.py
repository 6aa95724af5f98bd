"""What the papers' setting would take: gradients counted on made-up scores, timed on the real model."""

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradveil import rng
from gradveil.models import ModelSpec
from gradveil.scores import AccuracyScore, PrivacyScore
from gradveil.search import Outcome, SearchSettings
from gradveil.search.candidates import Candidate, draw_candidates
from gradveil.search.racing import Race
from gradveil.search.score_journal import ScoreSource
from gradveil.transforms import parse_policy

CANDIDATES, IMAGES, MODEL = 1500, 100, "resnet20-4"


class CountingScores(ScoreSource):
    """Made-up scores that count gradients and S_acc."""

    def __init__(self, settings: SearchSettings, table: Tensor, accuracy_table: Tensor) -> None:
        super().__init__(settings, settings.images)
        self.table, self.accuracy_table = table, accuracy_table
        self.gradients = 0

    def privacy_scores(self, policies: Sequence[str], places: Sequence[int], rule: str, what: str = "") -> Tensor:  # noqa: ARG002
        self.gradients += len(policies) * len(places) * self.kind.gradients(rule)
        rows = torch.tensor([int(policy) for policy in policies], dtype=torch.int64)
        return self.table[rows][:, torch.tensor(list(places), dtype=torch.int64)]

    def accuracy_scores(self, policies: Sequence[str], what: str = "") -> list[float]:  # noqa: ARG002
        self.known_accuracy |= {policy: float(self.accuracy_table[int(policy)]) for policy in policies}
        return [self.known_accuracy[policy] for policy in policies]

    def note(self, event: str, **facts: Any) -> None:
        """Write nothing down."""


def print_projection(scored: Outcome) -> None:
    """Print the processor time of a search of the papers' size, among candidates like those that were scored."""
    gradient, accuracy_seconds = time_model()
    functions = len(draw_candidates(0, CANDIDATES))
    table, qualified = enlarge(scored, functions)
    settings = SearchSettings(
        candidates=CANDIDATES, images=IMAGES, accuracy_threshold="0.5", training=None, weights="-"
    )
    scores = CountingScores(settings, table, qualified)
    Race(scores, [Candidate(str(row), str(row), (str(row),)) for row in range(functions)], 0.5).run()
    raced = scores.gradients * gradient + len(scores.known_accuracy) * accuracy_seconds
    everyone = functions * accuracy_seconds + float(qualified.sum()) * IMAGES * 20 * gradient
    print(f"\nprojected for {CANDIDATES} candidates ({functions} functions), {IMAGES} images, {MODEL}, from")
    each = f"{1000 * gradient:.0f} ms a gradient and {accuracy_seconds:.1f} s an S_acc of 100 images"
    print(f"  {each} (3×32×32, one thread)")
    print(f"  random {everyone / 3600:.1f} h, racing {raced / 3600:.2f} h of processor time; half as long on 2 cores")
    print(f"  (racing: {scores.gradients:,} gradients, {len(scores.known_accuracy)} S_acc)")


def time_model(images: int = 2) -> tuple[float, float]:
    """Time a gradient and an S_acc on random images; the values of pixels do not matter for that."""
    spec = ModelSpec(MODEL, (3, 32, 32), 100, (0.5,) * 3, (0.25,) * 3)
    source = rng.generator(0, "projection")
    pictures = torch.randint(256, (100, 3, 32, 32), generator=source, dtype=torch.uint8)
    labels = torch.randint(100, (100,), generator=source)
    model, policy = spec.build(rng.generator(0, "model")), parse_policy("3-1-7")
    privacy = PrivacyScore(model, pictures[:images], labels[:images])
    accuracy = AccuracyScore(model, pictures, labels, batches=1)
    privacy.score(policy, [0])
    started = time.process_time()
    privacy.score(policy)
    middle = time.process_time()
    accuracy.score(policy)
    return (middle - started) / images / privacy.quadrature.gradients, time.process_time() - middle


def enlarge(scored: Outcome, functions: int) -> tuple[Tensor, Tensor]:
    """Make up candidates and images like those that were scored: means and errors drawn from the real ones."""
    rows = torch.tensor(
        [candidate.privacy_scores for candidate in scored.candidates if candidate.exact], dtype=torch.float64
    )
    source = rng.generator(0, "projection", "scores")
    means = rows.mean(1)[torch.randint(len(rows), (functions,), generator=source)]
    # A little noise, so that no two candidates are the same.
    means = means + rows.mean(1).std() / 10 * torch.randn(functions, generator=source, dtype=torch.float64)
    errors = (rows - rows.mean(1, keepdim=True) - rows.mean(0) + rows.mean()).flatten()
    drawn = errors[torch.randint(len(errors), (functions, IMAGES), generator=source)]
    share = len(rows) / len(scored.candidates)
    return means.unsqueeze(1) + drawn, (torch.rand(functions, generator=source) < share).double()
