"""What a strategy comes back with."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradveil.search.candidates import Candidate
from gradveil.search.select import Status, Trial
from gradveil.search.study import Study

Rows = Mapping[int, tuple[float, ...]]


@dataclass(frozen=True)
class Outcome:
    """Every candidate as a trial, the kept ones first and ranked; `least` is the S_acc that qualifies."""

    trials: tuple[Trial, ...]
    least: float

    @property
    def kept(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.status == "kept"]

    @property
    def accuracies(self) -> list[float]:
        return [trial.accuracy for trial in self.trials if trial.accuracy is not None]

    def count(self, status: Status) -> int:
        return sum(trial.status == status for trial in self.trials)


def make_trials(
    study: Study, candidates: Sequence[Candidate], least: float, rough: Rows, exact: Rows, ranked: Sequence[int]
) -> Outcome:
    """Make a trial of each candidate; `ranked` holds the places of those that qualify and are exact, the best first."""
    keep = study.settings.keep
    trials = []
    for place in [*ranked, *(place for place in range(len(candidates)) if place not in set(ranked))]:
        one = candidates[place]
        values, fitness = exact.get(place, rough.get(place, ())), study.fitness.get(one.key)
        status: Status = "rejected"
        if place in ranked:
            status = "kept" if ranked.index(place) < keep else "beaten"
        elif not all(map(math.isfinite, values)):
            status = "failed"
        elif fitness is not None and fitness < least:
            status = "unfit"
        trials.append(Trial(one.policy, one.key, one.drawn, values, place in exact, fitness, status))
    return Outcome(tuple(trials), least)
