"""The strategies by name, and drawing on while too few candidates qualify."""

from collections.abc import Callable
from dataclasses import replace

import torch

from gradveil.errors import SettingsError
from gradveil.search.candidates import draw_candidates
from gradveil.search.evolve import evolve
from gradveil.search.outcome import Outcome, make_outcome
from gradveil.search.racing import Race
from gradveil.search.score_journal import ScoreSource
from gradveil.search.select import make_criterion, order
from gradveil.search.threshold import Threshold, describe_scores, is_out_of_reach

MOST = 3
"""How many times `candidates` are drawn at most while too few qualify."""


def search_randomly(scores: ScoreSource, count: int, threshold: float) -> Outcome:
    """Search the first `count` candidates by Algorithm 1 of Gao et al. (2021): keep the best of those that qualify.

    Differs from the printed algorithm: its first n candidates enter the set without a score, which line 9 then needs;
    here all are scored. Policies that are the same function count once.
    """
    settings = scores.settings
    candidates = draw_candidates(settings.seed, count, settings.length)
    accuracy_scores = scores.accuracy_scores([candidate.key for candidate in candidates])
    qualified = [place for place, score in enumerate(accuracy_scores) if score >= threshold]
    keys = [candidates[place].key for place in qualified]
    values = scores.privacy_scores(keys, range(scores.images), settings.rule)
    rows = {place: tuple(row) for place, row in zip(qualified, values.tolist(), strict=True)}
    finite = [row for row, is_finite in enumerate(values.isfinite().all(1).tolist()) if is_finite]
    ranked: list[int] = []
    if finite:
        values = values[torch.tensor(finite)]
        judged = make_criterion(settings.select, values).of_values(values)
        ranked = [qualified[finite[row]] for row in order(judged.tolist())]
    return make_outcome(scores, candidates, threshold, {}, rows, ranked)


def search_by_racing(scores: ScoreSource, count: int, threshold: float) -> Outcome:
    """Race the first `count` candidates."""
    candidates = draw_candidates(scores.settings.seed, count, scores.settings.length)
    return Race(scores, candidates, threshold).run()


STRATEGIES: dict[str, Callable[[ScoreSource, int, float], Outcome]] = {
    "racing": search_by_racing,
    "random": search_randomly,
    "evolve": evolve,
}


def take_threshold(scores: ScoreSource) -> float:
    """Return the least S_acc that qualifies; a quantile is taken over the first candidates, whatever is drawn later."""
    settings = scores.settings
    threshold = Threshold.parse(settings.accuracy_threshold)
    if not threshold.is_quantile:
        return threshold.value
    sample = draw_candidates(settings.seed, settings.candidates, settings.length)[: settings.sampled]
    return threshold.over(scores.accuracy_scores([candidate.key for candidate in sample], "S_acc, for the threshold"))


def find_policies(scores: ScoreSource) -> Outcome:
    """Run the strategy; draw on while fewer than `keep` qualify, until that proves hopeless."""
    settings = scores.settings
    count, most = settings.candidates, MOST * settings.candidates
    while True:
        outcome = replace(STRATEGIES[settings.strategy](scores, count, take_threshold(scores)), drawn=count)
        if len(outcome.kept) == settings.keep:
            scores.note("done", drawn=count)
            return outcome
        if outcome.count("failed") == len(outcome.candidates):
            raise SettingsError(
                f"S_pri is not finite for any of {len(outcome.candidates)} candidates: train the model again"
            )
        known = outcome.accuracy_scores
        qualified = sum(score >= outcome.threshold for score in known)
        scores.note("too few", drawn=count, qualified=qualified)
        if is_out_of_reach(qualified, len(known), settings.keep, most):
            raise SettingsError(
                f"the accuracy threshold {settings.accuracy_threshold} is out of reach: {qualified} of {len(known)} "
                f"different candidates have S_acc ≥ {outcome.threshold:.4g}, and {settings.keep} are wanted; S_acc: "
                f"{describe_scores(known)}. Lower it with --accuracy-threshold, or keep fewer with --keep"
            )
        count = min(most, count + max(settings.keep, settings.candidates // 2))
