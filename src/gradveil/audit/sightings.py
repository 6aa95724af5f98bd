"""Several rounds of the same images, as a curious server sees them: attacked together."""

from collections.abc import Mapping, Sequence

from gradveil.attacks import Attack, GradientMatching, ReleasedRound, attack_clients_together, find_labels
from gradveil.audit.jobs import refusal
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.rng import generator
from gradveil.rounds import Round
from gradveil.types import Batch, Reconstruction, Task


def attack_sightings(
    rounds: Mapping[str, Round], attack: Attack, name: str, *, public: Batch, seed: int, device: str
) -> dict[str, Reconstruction]:
    """Attack captured rounds, those of one client together; the result stands under the client's first capsule.

    Clients who were seen in the same rounds are attacked side by side.
    """
    if not isinstance(attack, GradientMatching):
        raise SettingsError(
            f"'{name}' takes one update at a time: attack rounds together with one search, such as fast, noise-aware "
            "or policy-aware"
        )
    tasks = {one.phase: one.task(public, device) for one in rounds.values()}
    results: dict[str, Reconstruction] = {}
    for clients in group_clients(rounds, tasks, device):
        first = rounds[clients[0][0]]
        size = attack.targets_together(tasks[first.phase], [first.update.to(device)])
        for begin in range(0, len(clients), size):
            part = clients[begin : begin + size]
            sources = [generator(seed, "attack", name, "together", rounds[own[0]].client) for own in part]
            sightings = [
                [ReleasedRound(tasks[rounds[capsule].phase], rounds[capsule].update.to(device)) for capsule in own]
                for own in part
            ]
            try:
                attack.check(sightings[0][0].task, [own[0].update for own in sightings])
                found = attack_clients_together(attack, sightings, sources)
            except KnowledgeError as error:
                found = [refusal(rounds[own[0]], str(error)) for own in part]
            results |= {own[0]: one for own, one in zip(part, found, strict=True)}
    return results


def group_clients(rounds: Mapping[str, Round], tasks: Mapping[str, Task], device: str) -> list[list[Sequence[str]]]:
    """List the capsules of each client that may be of the same images, in the order given; those seen alike together.

    Nobody tells the attacker that images are the same. It goes by the client, the number of images and their labels,
    given or read from the update.
    """
    sightings: dict[tuple[object, ...], list[str]] = {}
    for capsule, one in rounds.items():
        labels = find_labels(tasks[one.phase], one.update.to(device)).sort().values
        key = (one.client, one.update.images, one.update.local, *labels.tolist())
        sightings.setdefault(key, []).append(capsule)
    alike: dict[tuple[object, ...], list[Sequence[str]]] = {}
    for own in sightings.values():
        first = rounds[own[0]].update
        seen = (first.images, first.local, *(rounds[capsule].phase for capsule in own))
        alike.setdefault(seen, []).append(own)
    return list(alike.values())
