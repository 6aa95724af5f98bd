"""Several observations of the same images, attacked together.

A defence that draws anew in each round gives the attacker more equations for the same unknowns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from gradveil.attacks.base import Progress
from gradveil.attacks.matching import GradientMatching, best_restart, observe
from gradveil.attacks.observation import Observation, View
from gradveil.errors import KnowledgeError
from gradveil.rng import split
from gradveil.transforms import PolicyDraws
from gradveil.types import Reconstruction, Task, Update


@dataclass(frozen=True)
class Sighting:
    """One update and the task it belongs to: in another round the weights are others."""

    task: Task
    update: Update


def attack_together(
    attack: GradientMatching,
    sightings: Sequence[Sighting],
    generator: torch.Generator,
    progress: Progress | None = None,
) -> Reconstruction:
    """Rebuild the images that all sightings show.

    With `attack.knows_policy` the draw behind each sighting is found first, by attacking it alone; then one set of
    original images is optimised through all the draws at once. The sightings must be of the same images, in the same
    order, which the attacker knows or guesses from equal labels.
    """
    check_sightings(sightings)
    stages = len(sightings) + 1 if attack.knows_policy else 1
    alone = []
    if attack.knows_policy:
        for place, (sighting, source) in enumerate(zip(sightings, split(generator, len(sightings)), strict=True)):
            alone.append(find_view(attack, sighting, source))
            if progress is not None:
                progress(place + 1, stages)
    sources = split(generator, attack.restarts)
    plain = replace(attack, knows_policy=False, prune=())
    search = plain.prepare(sightings[0].task, [sightings[0].update], [sources])
    search.observations = [
        show(sighting, alone[place] if alone else None, attack.restarts) for place, sighting in enumerate(sightings)
    ]
    for _ in search.run():
        pass
    if progress is not None:
        progress(stages, stages)
    return best_restart(search.results())


def show(sighting: Sighting, view: View | None, runs: int) -> Observation:
    """Set one sighting before `runs` runs."""
    if view is not None:
        view = View(view.policies, PolicyDraws.join([view.draws] * runs), view.batch)
    return observe(sighting.task, [sighting.update], torch.zeros(runs, dtype=torch.int64), view)


def find_view(attack: GradientMatching, sighting: Sighting, generator: torch.Generator) -> View:
    """Find the draw that explains one sighting best."""
    attack.check(sighting.task, [sighting.update])
    count = attack.runs_per_target(sighting.task)
    search = attack.prepare(sighting.task, [sighting.update], [split(generator, count)])
    view = search.observations[0].view
    assert view is not None
    for _ in search.run():
        pass
    runs = search.results()
    return view.keep(torch.tensor([runs.index(best_restart(runs))]))


def check_sightings(sightings: Sequence[Sighting]) -> None:
    if not sightings:
        raise KnowledgeError("there is nothing to attack: give at least one sighting")
    if len({sighting.update.images for sighting in sightings}) > 1:
        raise KnowledgeError("sightings of different numbers of images cannot show the same ones")
