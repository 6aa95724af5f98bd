"""Algorithm 1 of Gao et al. (2021): score everyone, keep the best of those that qualify."""

import torch

from gradveil.search.candidates import draw_candidates
from gradveil.search.outcome import Outcome, make_trials
from gradveil.search.select import make_criterion, order
from gradveil.search.study import Study
from gradveil.search.threshold import Threshold


def take_threshold(study: Study) -> float:
    """Give the S_acc that qualifies; a quantile is taken over the first candidates, whatever is drawn later."""
    settings = study.settings
    threshold = Threshold.parse(settings.accuracy_threshold)
    sample = draw_candidates(settings.seed, settings.candidates, settings.length)[: settings.sampled]
    scores = study.accuracy([one.key for one in sample], "S_acc, for the threshold") if threshold.is_quantile else []
    return threshold.over(scores)


def search_randomly(study: Study, count: int) -> Outcome:
    """Search the first `count` candidates.

    Differs from the printed algorithm: its first n candidates enter the set without a score, which line 9 then needs;
    here all are scored. Policies that are the same function count once.
    """
    settings = study.settings
    candidates = draw_candidates(settings.seed, count, settings.length)
    least = take_threshold(study)
    fitness = study.accuracy([one.key for one in candidates])
    fit = [place for place in range(len(candidates)) if fitness[place] >= least]
    found = study.privacy([candidates[place].key for place in fit], range(study.images), settings.rule)
    rows = {place: tuple(row) for place, row in zip(fit, found.tolist(), strict=True)}
    finite = [row for row, sound in enumerate(found.isfinite().all(1).tolist()) if sound]
    ranked: list[int] = []
    if finite:
        sound = found[torch.tensor(finite)]
        ranked = [fit[finite[row]] for row in order(make_criterion(settings.select, sound).of_values(sound).tolist())]
    return make_trials(study, candidates, least, {}, rows, ranked)
