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
    return attack_clients_together(attack, [rounds], [generator], progress)[0]


def attack_clients_together(
    attack: GradientMatching,
    clients: Sequence[Sequence[ReleasedRound]],
    generators: Sequence[torch.Generator],
    progress: Progress | None = None,
) -> list[Reconstruction]:
    """Rebuild the images of several clients, each from its own rounds, as one tensor batch.

    The clients were in the same rounds: the first one's task of each round is that of all.
    """
    check_rounds(clients)
    numbers = range(len(clients[0]))
    stages = len(numbers) + 1 if attack.knowledge.policy else 1
    sources = [split(generator, len(numbers) + 1) for generator in generators]
    draws: list[AssumedDraws | None] = [None for _ in numbers]
    if attack.knowledge.policy:
        for number in numbers:
            ones = [rounds[number] for rounds in clients]
            draws[number] = find_draws(attack, ones, [own[number] for own in sources])
            if progress is not None:
                progress(number + 1, stages)
    count = attack.restarts.count
    plain = replace(
        attack, knowledge=replace(attack.knowledge, policy=False), restarts=replace(attack.restarts, prune=())
    )
    firsts = [rounds[0].update for rounds in clients]
    runs = plain.prepare(clients[0][0].task, firsts, [split(own[-1], count) for own in sources])
    runs.objective.observations = [
        repeat([rounds[number] for rounds in clients], own, count) for number, own in zip(numbers, draws, strict=True)
    ]
    take_all_steps(runs, generators[0])
    if progress is not None:
        progress(stages, stages)
    results = runs.results()
    return [best_restart(results[first : first + count]) for first in range(0, len(results), count)]


def repeat(ones: Sequence[ReleasedRound], draws: AssumedDraws | None, runs: int) -> Observation:
    """Let so many runs match each client's update of one round; `draws` has those of one run of each client."""
    targets = torch.arange(len(ones)).repeat_interleave(runs)
    return observe(ones[0].task, [one.update for one in ones], targets, None if draws is None else draws.keep(targets))


def find_draws(
    attack: GradientMatching, ones: Sequence[ReleasedRound], generators: Sequence[torch.Generator]
) -> AssumedDraws:
    """Find the draws that explain each client's update of one round best."""
    task, updates = ones[0].task, [one.update for one in ones]
    attack.check(task, updates)
    count = attack.runs_per_target(task)
    runs = attack.prepare(task, updates, [split(generator, count) for generator in generators])
    draws = runs.objective.observations[0].draws
    assert draws is not None
    take_all_steps(runs, generators[0])
    losses = torch.tensor([one.matching_loss if one.status == "ok" else torch.inf for one in runs.results()])
    best = losses.view(-1, count).argmin(1)
    return draws.keep(best + count * torch.arange(len(ones)))


def take_all_steps(runs: Runs, generator: torch.Generator) -> None:
    with layers_draw_like(generator):
        for _ in runs.run():
            pass


def check_rounds(clients: Sequence[Sequence[ReleasedRound]]) -> None:
    """Refuse rounds that cannot be of the same images."""
    if not clients or not all(clients):
        raise KnowledgeError("there is nothing to attack: give at least one round")
    if len({len(rounds) for rounds in clients}) > 1:
        raise KnowledgeError("clients of different numbers of rounds cannot be attacked side by side")
    if len({one.update.images for rounds in clients for one in rounds}) > 1:
        raise KnowledgeError("rounds of different numbers of images cannot be of the same ones")
