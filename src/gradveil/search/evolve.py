"""Evolution: most candidates are children of the best so far, by mutation and crossover.

All candidates, drawn or bred, are scored on the images of the first round of a race, which is all that selection looks
at; in the end they run the race together.
"""

import torch

from gradveil.rng import generator
from gradveil.search.candidates import Candidate, draw_policy, put_together
from gradveil.search.outcome import Outcome
from gradveil.search.racing import Leg, Race, plan_legs
from gradveil.search.random import take_threshold
from gradveil.search.select import order
from gradveil.search.study import Study
from gradveil.transforms import CATALOGUE, Policy, parse_policy

CROSSOVER = 0.5
"""The share of children that have two parents."""
FRESH = 0.1
"""The share of each generation that is drawn, so that no part of the space is out of reach."""
GENERATION = 4
"""Children in a generation for each policy that is kept."""
BARREN = 20
"""Generations without any new function after which the search is over."""


def evolve(study: Study, count: int) -> Outcome:
    """Search with `count` candidates, of which a part is drawn and the rest bred."""
    settings = study.settings
    least = take_threshold(study)
    leg = plan_legs(study.images, study.block, study.kind.rough, study.kind.fine, settings.seed)[0]
    size = min(count, GENERATION * settings.keep)
    met = put_together(draw_policy(settings.seed, number, settings.length) for number in range(size))
    generation, barren = 0, 0
    while len(met) < count and barren < BARREN:
        generation += 1
        parents = choose_parents(study, met, leg, least)
        children = breed(parents, min(size, count - len(met)), generation, settings.seed, settings.length)
        known = {one.key for one in met}
        new = [one for one in put_together(children) if one.key not in known]
        barren = 0 if new else barren + 1
        met += new
        study.note("generation", number=generation, met=len(met), leaders=[str(parent) for parent in parents[:3]])
    return Race(study, met, least).run()


def choose_parents(study: Study, met: list[Candidate], leg: Leg, least: float) -> list[Policy]:
    """Take the best on the images of the first round, `keep` of them that qualify, or as many as there are."""
    found = study.privacy([one.key for one in met], leg.places, leg.rule, "S_pri of a generation")
    ranked = [met[row] for row in order(found.mean(1).nan_to_num(nan=torch.inf).tolist())]
    parents: list[Candidate] = []
    while ranked and len(parents) < study.settings.keep:
        some, ranked = ranked[: study.settings.keep - len(parents)], ranked[study.settings.keep - len(parents) :]
        fitness = study.accuracy([one.key for one in some])
        parents += [one for one, fit in zip(some, fitness, strict=True) if fit >= least]
    return [parse_policy(one.key).policies[0] for one in parents]


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
