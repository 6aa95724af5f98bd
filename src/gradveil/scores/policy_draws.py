"""Which transformation each image gets: a draw of its own, the same whichever other images are scored."""

from collections.abc import Sequence

from torch import Tensor

from gradveil.rng import generator
from gradveil.transforms import Policy, PolicyDraws, PolicySet, prefix

PRIVACY_STREAM = "privacy draw"
"""The stream of the draws that all scores of privacy share, so that they see the same transformed images."""


def simplify(policy: Policy | PolicySet) -> PolicySet:
    """Write a policy without identities and with the first index of each function.

    Policies that compute the same come out equal, so that they get the same draws and the same score.

    >>> print(simplify(Policy((43, 39, 18))), simplify(Policy((24, 18))))
    24-18 24-18
    """
    members = policy.policies if isinstance(policy, PolicySet) else (policy,)
    return PolicySet(tuple(simplify_member(member) for member in members))


def simplify_member(policy: Policy) -> Policy:
    functions = [transform.function for transform in policy.catalogue.transforms]
    kept = [functions.index(step.function) for step in policy.transforms if not step.is_identity]
    return Policy(tuple(kept), policy.catalogue)


def function_of(policy: Policy | PolicySet) -> str:
    """Name what a policy computes: equal for policies with equal scores.

    >>> function_of(Policy((43, 39, 18)))
    'translateY:3 > contrast:7'
    """
    simple = simplify(policy)
    return prefix(simple.catalogue) + " + ".join(member.function for member in simple.policies)


def transform_images(
    policy: Policy | PolicySet, images: Tensor, places: Sequence[int], seed: int, stream: str
) -> Tensor:
    """Transform the images at `places`; each draw comes from a generator named by the function and the place."""
    simple, name = simplify(policy), function_of(policy)
    draws = [simple.sample(1, generator(seed, stream, name, place)) for place in places]
    return simple.apply(images[list(places)], PolicyDraws.join(draws))
