"""Evolution: most candidates are children of the best so far, by mutation and crossover.

All candidates, drawn or bred, are scored on the images of the first round of a race, which is all that selection looks
at; in the end they run the race together.
"""

import torch

from gradveil.rng import generator
from gradveil.search.candidates import Candidate, draw_policy, put_together
from gradveil.search.outcome import Outcome
from gradveil.search.racing import Race, RoundPlan, plan_rounds
from gradveil.search.score_journal import ScoreSource
from gradveil.search.select import order
from gradveil.transforms import CATALOGUE, Policy, parse_policy

CROSSOVER = 0.5
"""The share of children that have two parents."""
FRESH = 0.1
"""The share of each generation that is drawn, so that no part of the space is out of reach."""
GENERATION = 4
"""Children in a generation for each policy that is kept."""
BARREN = 20
"""Generations without any new function after which the search is over."""


def evolve(scores: ScoreSource, count: int, threshold: float) -> Outcome:
    """Search with `count` candidates, of which a part is drawn and the rest bred."""
    settings = scores.settings
    first = plan_rounds(scores.images, scores.block, scores.kind)[0]
    size = min(count, GENERATION * settings.keep)
    met = put_together(draw_policy(settings.seed, number, settings.length) for number in range(size))
    generation, barren = 0, 0
    while len(met) < count and barren < BARREN:
        generation += 1
        parents = choose_parents(scores, met, first, threshold)
        children = breed(parents, min(size, count - len(met)), generation, settings.seed, settings.length)
        known = {candidate.key for candidate in met}
        new = [candidate for candidate in put_together(children) if candidate.key not in known]
        barren = 0 if new else barren + 1
        met += new
        scores.note("generation", number=generation, met=len(met), leaders=[str(parent) for parent in parents[:3]])
    return Race(scores, met, threshold).run()


def choose_parents(scores: ScoreSource, met: list[Candidate], first: RoundPlan, threshold: float) -> list[Policy]:
    """Choose the best on the images of the first round, `keep` of them that qualify, or as many as there are."""
    keep = scores.settings.keep
    values = scores.privacy_scores(
        [candidate.key for candidate in met], first.places, first.rule, "S_pri of a generation"
    )
    ranked = [met[row] for row in order(values.mean(1).nan_to_num(nan=torch.inf).tolist())]
    parents: list[Candidate] = []
    while ranked and len(parents) < keep:
        some, ranked = ranked[: keep - len(parents)], ranked[keep - len(parents) :]
        accuracy_scores = scores.accuracy_scores([candidate.key for candidate in some])
        parents += [candidate for candidate, score in zip(some, accuracy_scores, strict=True) if score >= threshold]
    return [parse_policy(parent.key).policies[0] for parent in parents]


def breed(parents: list[Policy], count: int, generation: int, seed: int, length: int) -> list[Policy]:
    """Make the children of a generation; without parents all are drawn."""
    children = []
    for number in range(count):
        source = generator(seed, "evolve", generation, number)
        if not parents or chance(source) < FRESH:
            children.append(draw_policy(seed, int(torch.randint(2**31, (), generator=source)), length))
        elif chance(source) < CROSSOVER:
            children.append(mutate(cross(pick(parents, source), pick(parents, source), length, source), length, source))
        else:
            children.append(mutate(pick(parents, source), length, source))
    return children


def cross(first: Policy, second: Policy, length: int, source: torch.Generator) -> Policy:
    """Join the beginning of one policy with the end of another."""
    cut = int(torch.randint(len(first.indices) + 1, (), generator=source))
    other = int(torch.randint(len(second.indices) + 1, (), generator=source))
    return Policy((first.indices[:cut] + second.indices[other:])[:length])


def mutate(policy: Policy, length: int, source: torch.Generator) -> Policy:
    """Replace, insert, drop or swap a step at random."""
    steps = list(policy.indices)
    place = int(torch.randint(max(1, len(steps)), (), generator=source))
    entry = int(torch.randint(len(CATALOGUE), (), generator=source))
    kinds = ["replace"] * (len(steps) > 0) + ["insert"] * (len(steps) < length) + ["drop", "swap"] * (len(steps) > 1)
    kind = kinds[int(torch.randint(len(kinds), (), generator=source))]
    if kind == "replace":
        steps[place] = entry
    elif kind == "insert":
        steps.insert(place, entry)
    elif kind == "drop":
        del steps[place]
    else:
        other = (place + 1) % len(steps)
        steps[place], steps[other] = steps[other], steps[place]
    return Policy(tuple(steps))


def pick(parents: list[Policy], source: torch.Generator) -> Policy:
    return parents[int(torch.randint(len(parents), (), generator=source))]


def chance(source: torch.Generator) -> float:
    return float(torch.rand((), generator=source))
