"""The candidates: policies drawn uniformly, and which of them are the same function."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from gradveil.rng import generator
from gradveil.scores import simplify
from gradveil.transforms import CATALOGUE, MAX_STEPS, Policy


@dataclass(frozen=True)
class Candidate:
    """A function, as the first policy that computes it and as all that were drawn.

    `key` is the policy without identities and with the first index of each function: what is scored.
    """

    policy: str
    key: str
    drawn: tuple[str, ...]


def count_policies(length: int = MAX_STEPS) -> int:
    """Count the policies of 1 to `length` transformations.

    >>> count_policies()
    127550
    """
    return sum(len(CATALOGUE) ** steps for steps in range(1, length + 1))


def policy_at(place: int) -> Policy:
    """Return the policy at a place of the list of all, shorter ones first.

    >>> print(policy_at(0), policy_at(50), policy_at(127_549))
    0 0-0 49-49-49
    """
    steps = 1
    while place >= len(CATALOGUE) ** steps:
        place -= len(CATALOGUE) ** steps
        steps += 1
    indices = []
    for _ in range(steps):
        place, index = divmod(place, len(CATALOGUE))
        indices.append(index)
    return Policy(tuple(reversed(indices)))


def draw_policy(seed: int, number: int, length: int = MAX_STEPS) -> Policy:
    """Draw candidate `number`, uniformly over all policies of up to `length` transformations."""
    place = torch.randint(count_policies(length), (), generator=generator(seed, "candidate", number))
    return policy_at(int(place))


def draw_candidates(seed: int, count: int, length: int = MAX_STEPS) -> list[Candidate]:
    """Draw `count` policies and put those together that are the same function; more of them only add to these."""
    return put_together(draw_policy(seed, number, length) for number in range(count))


def put_together(policies: Iterable[Policy]) -> list[Candidate]:
    """Make one candidate of all policies that are the same function, in the order of their first ones."""
    groups: dict[str, dict[str, None]] = {}
    for policy in policies:
        groups.setdefault(str(simplify(policy)), {})[str(policy)] = None
    return [Candidate(next(iter(drawn)), key, tuple(drawn)) for key, drawn in groups.items()]
