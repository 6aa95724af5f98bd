"""Racing: few images and few nodes for all candidates, more for those that may still be among the best.

Decisions are taken after complete rounds. After each, the least promising candidates are rejected, as many as together
hold at most a fixed share of one of the best on average (`beliefs`). Over all rounds and the last comparison the
expected share of the best `keep` that is lost is at most `error`, if the model of `beliefs` holds. Those that remain
are scored in full, S_acc is taken only of those that lead, and what qualifies is ranked as in Algorithm 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.rng import generator
from gradveil.search.beliefs import Beliefs, choose_rejected, weigh
from gradveil.search.candidates import Candidate
from gradveil.search.outcome import Outcome, make_trials
from gradveil.search.select import Criterion, make_criterion, order
from gradveil.search.study import Study

GROWTH = 1.5
LAST_SHARE = 0.5
"""The share of the permitted losses that is left to the last comparison, where a candidate costs most."""


@dataclass(frozen=True)
class Leg:
    """One round: the images that are new in it, and the rule they are scored by."""

    places: tuple[int, ...]
    rule: str


def plan_legs(images: int, block: int, rough: str, fine: str, seed: int) -> list[Leg]:
    """Share the images out over the rounds, in whole groups of neighbours and in random order.

    The first round is by the rough rule, the others by the fine one.
    """
    blocks = [list(range(start, min(start + block, images))) for start in range(0, images, block)]
    shuffled = torch.randperm(len(blocks), generator=generator(seed, "search", "images")).tolist()
    legs: list[Leg] = []
    done, end = 0, 1.0
    while done < len(blocks):
        stop = min(len(blocks), max(done + 1, round(end)))
        places = [place for number in shuffled[done:stop] for place in blocks[number]]
        legs.append(Leg(tuple(places), fine if legs else rough))
        done, end = stop, max(stop + 1, GROWTH * stop)
    return legs


class Race:
    """Some candidates on their way; `alive` are the places of those still in the running."""

    def __init__(self, study: Study, candidates: Sequence[Candidate], least: float) -> None:
        self.study, self.candidates, self.least = study, list(candidates), least
        settings = study.settings
        self.legs = plan_legs(study.images, study.block, study.kind.rough, study.kind.fine, settings.seed)
        self.budget = settings.error * settings.keep * (1 - LAST_SHARE) / len(self.legs)
        self.last_budget = settings.error * settings.keep * LAST_SHARE
        self.alive = list(range(len(self.candidates)))
        self.values = torch.empty(len(self.alive), 0, dtype=torch.float64)
        self.legs_done = 0
        self.criterion = Criterion()
        self.spread: float | None = None
        self.lost: dict[int, tuple[float, ...]] = {}

    def run(self) -> Outcome:
        """Run every round and the last comparison; too few that qualify end the race early."""
        for number, leg in enumerate(self.legs, 1):
            self.extend(leg, number)
            leaders = self.find_leaders()
            if len(leaders) < self.study.settings.keep:
                return self.outcome({}, [])
            self.reject(leg, number, leaders)
        return self.finish()

    def extend(self, leg: Leg, number: int) -> None:
        """Score everyone on the images of a round; who has no finite score is out."""
        found = self.study.privacy(self.keys(self.alive), leg.places, leg.rule, f"round {number} of {len(self.legs)}")
        self.values = torch.cat([self.values, found], 1)
        self.legs_done = number
        self.drop([row for row, finite in enumerate(self.values.isfinite().all(1).tolist()) if not finite])
        if number == 1:
            self.criterion = make_criterion(self.study.settings.select, self.values)

    def find_leaders(self) -> list[int]:
        """Take S_acc from the best down until `keep` qualify; give their rows. Who does not qualify is out."""
        while True:
            leaders, unknown, unfit = self.look_down()
            self.drop(unfit)
            if unfit:
                continue
            if not unknown:
                return leaders
            self.study.accuracy(self.keys([self.alive[row] for row in unknown]))

    def look_down(self) -> tuple[list[int], list[int], list[int]]:
        """Part the best into those that qualify, those whose S_acc is not known, and those that do not qualify."""
        leaders: list[int] = []
        unknown: list[int] = []
        unfit: list[int] = []
        for row in order(self.criterion.of_values(self.values).tolist()):
            if len(leaders) + len(unknown) == self.study.settings.keep:
                break
            fitness = self.fitness(row)
            (unknown if fitness is None else leaders if fitness >= self.least else unfit).append(row)
        return leaders, unknown, unfit

    def reject(self, leg: Leg, number: int, leaders: list[int]) -> None:
        """Let go of those that can hardly be among the best any more."""
        error = self.rule_error()
        beliefs, self.spread = weigh(self.values, self.study.images, self.criterion, self.spread, error)
        source = generator(self.study.settings.seed, "search", "worlds", number)
        chances = beliefs.chances(self.study.settings.keep, self.fit_chances(), source)
        shown = [self.candidates[self.alive[row]].policy for row in leaders]
        self.drop(choose_rejected(chances, self.budget, set(leaders)))
        self.study.note(
            "round",
            number=number,
            of=len(self.legs),
            images=self.values.shape[1],
            rule=leg.rule,
            alive=len(self.alive),
            leaders=shown,
        )

    def rule_error(self) -> float:
        """Give the error of the means seen so far that comes from their rules, each with the share of its images."""
        seen, errors = self.values.shape[1], self.study.kind.errors
        counts: dict[str, int] = {}
        for leg in self.legs[: self.legs_done]:
            counts[leg.rule] = counts.get(leg.rule, 0) + len(leg.places)
        return math.hypot(*(count / seen * errors.get(rule, 0.0) for rule, count in counts.items()))

    def fit_chances(self) -> Tensor:
        """Give the chance of each to qualify: known, or the share of those that were tried, with one of each more."""
        tried = [self.study.fitness[one.key] for one in self.candidates if one.key in self.study.fitness]
        share = (sum(fitness >= self.least for fitness in tried) + 1) / (len(tried) + 2)
        return torch.tensor([share if self.fitness(row) is None else 1.0 for row in range(len(self.alive))]).double()

    def finish(self) -> Outcome:
        """Score the leaders exactly, then whoever might still be better than one of them."""
        leaders = self.find_leaders()
        exact = self.score_exactly([self.alive[row] for row in leaders])
        doubtful = [self.alive[row] for row in self.doubtful(exact)]
        fitness = self.study.accuracy(self.keys(doubtful))
        exact |= self.score_exactly([place for place, fit in zip(doubtful, fitness, strict=True) if fit >= self.least])
        finite = [place for place, row in exact.items() if all(map(math.isfinite, row))]
        rows = torch.tensor([exact[place] for place in finite], dtype=torch.float64).view(len(finite), -1)
        ranked = [finite[row] for row in order(self.criterion.of_values(rows).tolist())]
        return self.outcome(exact, ranked)

    def score_exactly(self, places: Sequence[int]) -> dict[int, tuple[float, ...]]:
        """Score candidates on all images by the rule that counts."""
        study = self.study
        found = study.privacy(self.keys(places), range(study.images), study.settings.rule, "exact scores")
        study.note("exact", scored=len(places))
        return dict(zip(places, map(tuple, found.tolist()), strict=True))

    def doubtful(self, exact: dict[int, tuple[float, ...]]) -> list[int]:
        """Find the rows that are not scored exactly and may yet turn out better.

        How far exact scores lie from rough ones is learnt from the leaders, who have both.
        """
        judged = self.criterion.of_values(self.values)
        known = [row for row, place in enumerate(self.alive) if place in exact]
        truth = self.criterion.of_values(torch.tensor([exact[self.alive[row]] for row in known], dtype=torch.float64))
        truth = truth.nan_to_num(nan=torch.inf)
        gap = (truth - judged[known])[truth.isfinite()]
        # As if one more gap had been seen, of the size that is known of the rules.
        doubt = math.sqrt((float((gap - gap.mean()).square().sum()) + self.rule_error() ** 2) / max(1, len(gap)))
        centres, deviations = judged + gap.mean().nan_to_num(), torch.full_like(judged, doubt)
        centres[known], deviations[known] = truth, 0.0
        source = generator(self.study.settings.seed, "search", "worlds", "last")
        chances = Beliefs(centres, deviations).chances(self.study.settings.keep, self.fit_chances(), source)
        rejected = choose_rejected(chances, self.last_budget, set(known))
        return [row for row in range(len(self.alive)) if row not in rejected and row not in known]

    def fitness(self, row: int) -> float | None:
        return self.study.fitness.get(self.candidates[self.alive[row]].key)

    def keys(self, places: Sequence[int]) -> list[str]:
        return [self.candidates[place].key for place in places]

    def drop(self, rows: Sequence[int]) -> None:
        """Take rows out of the race; what is known of them is kept."""
        gone = set(rows)
        for row in gone:
            self.lost[self.alive[row]] = tuple(self.values[row].tolist())
        stay = [row for row in range(len(self.alive)) if row not in gone]
        self.alive, self.values = [self.alive[row] for row in stay], self.values[stay]

    def outcome(self, exact: dict[int, tuple[float, ...]], ranked: list[int]) -> Outcome:
        """Put together what is known of everyone."""
        rough = self.lost | {place: tuple(self.values[row].tolist()) for row, place in enumerate(self.alive)}
        return make_trials(self.study, self.candidates, self.least, rough, exact, ranked)
