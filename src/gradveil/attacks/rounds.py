"""The updates of several rounds, of the same images, attacked together.

A defence that draws anew in each round gives the attacker more equations for the same unknowns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from gradveil.attacks.base import Progress, layers_draw_like
from gradveil.attacks.matching import GradientMatching
from gradveil.attacks.observation import AssumedDraws, Observation, observe
from gradveil.attacks.restarts import best_restart
from gradveil.attacks.runs import Runs
from gradveil.errors import KnowledgeError
from gradveil.rng import split
from gradveil.types import Reconstruction, Task, Update


@dataclass(frozen=True, eq=False)
class ReleasedRound:
    """One update and the task it belongs to: in another round the weights are others."""

    task: Task
    update: Update


def attack_together(
    attack: GradientMatching,
    rounds: Sequence[ReleasedRound],
    generator: torch.Generator,
    progress: Progress | None = None,
) -> Reconstruction:
    """Rebuild the images that all rounds share.

    If the attack knows the policy, the draw behind each round is found first, by attacking it alone; then one set of
    original images is optimised through all the draws at once. The rounds must be of the same images, in the same
    order, which the attacker knows or guesses from equal labels.
    """
    check_rounds(rounds)
    stages = len(rounds) + 1 if attack.knowledge.policy else 1
    draws: list[AssumedDraws | None] = [None] * len(rounds)
    if attack.knowledge.policy:
        for place, (one, source) in enumerate(zip(rounds, split(generator, len(rounds)), strict=True)):
            draws[place] = find_draws(attack, one, source)
            if progress is not None:
                progress(place + 1, stages)
    count = attack.restarts.count
    plain = replace(
        attack, knowledge=replace(attack.knowledge, policy=False), restarts=replace(attack.restarts, prune=())
    )
    runs = plain.prepare(rounds[0].task, [rounds[0].update], [split(generator, count)])
    runs.objective.observations = [repeat(one, own, count) for one, own in zip(rounds, draws, strict=True)]
    take_all_steps(runs, generator)
    if progress is not None:
        progress(stages, stages)
    return best_restart(runs.results())


def repeat(one: ReleasedRound, draws: AssumedDraws | None, runs: int) -> Observation:
    """Let so many runs match the update of one round."""
    targets = torch.zeros(runs, dtype=torch.int64)
    return observe(one.task, [one.update], targets, None if draws is None else draws.repeat(runs))


def find_draws(attack: GradientMatching, one: ReleasedRound, generator: torch.Generator) -> AssumedDraws:
    """Find the draws that explain one round best."""
    attack.check(one.task, [one.update])
    runs = attack.prepare(one.task, [one.update], [split(generator, attack.runs_per_target(one.task))])
    draws = runs.objective.observations[0].draws
    assert draws is not None
    take_all_steps(runs, generator)
    losses = [result.matching_loss if result.status == "ok" else float("inf") for result in runs.results()]
    return draws.keep(torch.tensor([losses.index(min(losses))]))


def take_all_steps(runs: Runs, generator: torch.Generator) -> None:
    with layers_draw_like(generator):
        for _ in runs.run():
            pass


def check_rounds(rounds: Sequence[ReleasedRound]) -> None:
    """Refuse rounds that cannot be of the same images."""
    if not rounds:
        raise KnowledgeError("there is nothing to attack: give at least one round")
    if len({one.update.images for one in rounds}) > 1:
        raise KnowledgeError("rounds of different numbers of images cannot be of the same ones")
