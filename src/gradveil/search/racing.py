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
from gradveil.scores import ScoreKind
from gradveil.search.beliefs import Beliefs, choose_rejected, weigh
from gradveil.search.candidates import Candidate
from gradveil.search.outcome import Outcome, make_outcome
from gradveil.search.score_journal import ScoreSource
from gradveil.search.select import Criterion, make_criterion, order

GROWTH = 1.5
LAST_SHARE = 0.5
"""The share of the permitted losses that is left to the last comparison, where a candidate costs most."""


@dataclass(frozen=True)
class RoundPlan:
    """One round: the images that are new in it, and the rule they are scored by."""

    places: tuple[int, ...]
    rule: str


def plan_rounds(images: int, block: int, kind: ScoreKind) -> list[RoundPlan]:
    """Share the images out over the rounds, in whole groups of neighbours and in their own order.

    The images come in a random order that is balanced over the classes (`choose_privacy_images`); what has been seen
    after any round is then balanced as well. The first round is by the rough rule, the others by the fine one.
    """
    blocks = [list(range(start, min(start + block, images))) for start in range(0, images, block)]
    rounds: list[RoundPlan] = []
    done, end = 0, 1.0
    while done < len(blocks):
        stop = min(len(blocks), max(done + 1, round(end)))
        places = [place for members in blocks[done:stop] for place in members]
        rounds.append(RoundPlan(tuple(places), kind.fine if rounds else kind.rough))
        done, end = stop, max(stop + 1, GROWTH * stop)
    return rounds


class Race:
    """Some candidates on their way; `alive` are the places of those still in the running."""

    def __init__(self, scores: ScoreSource, candidates: Sequence[Candidate], threshold: float) -> None:
        self.scores, self.candidates, self.threshold = scores, list(candidates), threshold
        settings = scores.settings
        self.rounds = plan_rounds(scores.images, scores.block, scores.kind)
        self.budget = settings.error * settings.keep * (1 - LAST_SHARE) / len(self.rounds)
        self.last_budget = settings.error * settings.keep * LAST_SHARE
        self.alive = list(range(len(self.candidates)))
        self.values = torch.empty(len(self.alive), 0, dtype=torch.float64)
        self.rounds_done = 0
        self.criterion = Criterion()
        self.spread: float | None = None
        self.lost: dict[int, tuple[float, ...]] = {}

    def run(self) -> Outcome:
        """Run every round and the last comparison; too few that qualify end the race early."""
        for number, plan in enumerate(self.rounds, 1):
            self.extend(plan, number)
            leaders = self.find_leaders()
            if len(leaders) < self.scores.settings.keep:
                return self.outcome({}, [])
            self.reject(plan, number, leaders)
        return self.finish()

    def extend(self, plan: RoundPlan, number: int) -> None:
        """Score everyone on the images of a round; who has no finite score is out."""
        what = f"round {number} of {len(self.rounds)}"
        new = self.scores.privacy_scores(self.keys(self.alive), plan.places, plan.rule, what)
        self.values = torch.cat([self.values, new], 1)
        self.rounds_done = number
        self.drop([row for row, finite in enumerate(self.values.isfinite().all(1).tolist()) if not finite])
        if number == 1:
            self.criterion = make_criterion(self.scores.settings.select, self.values)

    def find_leaders(self) -> list[int]:
        """Take S_acc from the best down until `keep` qualify; return their rows. Who does not qualify is out."""
        while True:
            leaders, unknown, unqualified = self.look_down()
            self.drop(unqualified)
            if unqualified:
                continue
            if not unknown:
                return leaders
            self.scores.accuracy_scores(self.keys([self.alive[row] for row in unknown]))

    def look_down(self) -> tuple[list[int], list[int], list[int]]:
        """Part the best into those that qualify, those whose S_acc is not known, and those that do not qualify."""
        leaders: list[int] = []
        unknown: list[int] = []
        unqualified: list[int] = []
        for row in order(self.criterion.of_values(self.values).tolist()):
            if len(leaders) + len(unknown) == self.scores.settings.keep:
                break
            score = self.accuracy_score(row)
            (unknown if score is None else leaders if score >= self.threshold else unqualified).append(row)
        return leaders, unknown, unqualified

    def reject(self, plan: RoundPlan, number: int, leaders: list[int]) -> None:
        """Let go of those that can hardly be among the best any more."""
        error = self.rule_error()
        beliefs, self.spread = weigh(self.values, self.scores.images, self.criterion, self.spread, error)
        source = generator(self.scores.settings.seed, "search", "worlds", number)
        chances = beliefs.chances(self.scores.settings.keep, self.chances_to_qualify(), source)
        shown = [self.candidates[self.alive[row]].policy for row in leaders]
        self.drop(choose_rejected(chances, self.budget, set(leaders)))
        self.scores.note(
            "round",
            number=number,
            of=len(self.rounds),
            images=self.values.shape[1],
            rule=plan.rule,
            alive=len(self.alive),
            leaders=shown,
        )

    def rule_error(self) -> float:
        """Compute the error of the means seen so far that comes from their rules, each with the share of its images."""
        seen, errors = self.values.shape[1], self.scores.kind.errors
        counts: dict[str, int] = {}
        for plan in self.rounds[: self.rounds_done]:
            counts[plan.rule] = counts.get(plan.rule, 0) + len(plan.places)
        return math.hypot(*(count / seen * errors.get(rule, 0.0) for rule, count in counts.items()))

    def chances_to_qualify(self) -> Tensor:
        """Return the chance of each to qualify: known, or the share of those that were tried, with one of each more."""
        known = self.scores.known_accuracy
        tried = [known[candidate.key] for candidate in self.candidates if candidate.key in known]
        share = (sum(score >= self.threshold for score in tried) + 1) / (len(tried) + 2)
        chances = [share if self.accuracy_score(row) is None else 1.0 for row in range(len(self.alive))]
        return torch.tensor(chances).double()

    def finish(self) -> Outcome:
        """Score the leaders exactly, then whoever might still be better than one of them."""
        leaders = self.find_leaders()
        exact = self.score_exactly([self.alive[row] for row in leaders])
        doubtful = [self.alive[row] for row in self.doubtful(exact)]
        accuracy_scores = self.scores.accuracy_scores(self.keys(doubtful))
        pairs = zip(doubtful, accuracy_scores, strict=True)
        exact |= self.score_exactly([place for place, score in pairs if score >= self.threshold])
        finite = [place for place, row in exact.items() if all(map(math.isfinite, row))]
        rows = torch.tensor([exact[place] for place in finite], dtype=torch.float64).view(len(finite), -1)
        ranked = [finite[row] for row in order(self.criterion.of_values(rows).tolist())]
        return self.outcome(exact, ranked)

    def score_exactly(self, places: Sequence[int]) -> dict[int, tuple[float, ...]]:
        """Score candidates on all images by the rule that counts."""
        scores = self.scores
        values = scores.privacy_scores(self.keys(places), range(scores.images), scores.settings.rule, "exact scores")
        scores.note("exact", scored=len(places))
        return dict(zip(places, map(tuple, values.tolist()), strict=True))

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
        source = generator(self.scores.settings.seed, "search", "worlds", "last")
        chances = Beliefs(centres, deviations).chances(self.scores.settings.keep, self.chances_to_qualify(), source)
        rejected = choose_rejected(chances, self.last_budget, set(known))
        return [row for row in range(len(self.alive)) if row not in rejected and row not in known]

    def accuracy_score(self, row: int) -> float | None:
        return self.scores.known_accuracy.get(self.candidates[self.alive[row]].key)

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
        return make_outcome(self.scores, self.candidates, self.threshold, rough, exact, ranked)
