"""Policies: up to three transforms in order; policy sets: each image draws one of several policies.

Parameters are drawn first and applied afterwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product

import torch
from torch import Tensor

from gradveil.errors import PolicyError, SettingsError
from gradveil.transforms.base import BatchTransform, Draws, straight_through, to_bytes, to_float
from gradveil.transforms.catalogue import CATALOGUE, Catalogue, Operation, Transform
from gradveil.transforms.running import run_groups, run_steps

MAX_STEPS = 3
"""The most transformations of a policy."""


@dataclass(frozen=True, eq=False)
class PolicyDraws(Draws):
    """The member of a policy set that each image drew, int64 N, and its signs +1 or −1, int8 N×steps.

    Steps that draw no sign hold +1, so that equal draws are equal tensors.
    """

    members: Tensor
    signs: Tensor

    def __post_init__(self) -> None:
        if self.members.dim() != 1 or self.signs.dim() != 2 or self.signs.shape[0] != self.members.shape[0]:
            raise SettingsError(
                f"draws with members of shape {tuple(self.members.shape)} and signs of shape "
                f"{tuple(self.signs.shape)}: they must be N and N×steps"
            )

    def tensors(self) -> tuple[Tensor, ...]:
        return self.members, self.signs


@dataclass(frozen=True)
class Policy(BatchTransform[PolicyDraws]):
    """Up to three entries of a catalogue, applied in order; none at all is the identity.

    >>> print(Policy((3, 1, 7)), Policy(()))
    3-1-7 none
    """

    indices: tuple[int, ...]
    catalogue: Catalogue = CATALOGUE

    def __post_init__(self) -> None:
        if len(self.indices) > MAX_STEPS:
            raise PolicyError(f"a policy of {len(self.indices)} steps: at most {MAX_STEPS} are allowed; drop the rest")
        last = len(self.catalogue) - 1
        for index in self.indices:
            if not 0 <= index <= last:
                raise PolicyError(f"index {index} is not in catalogue {self.catalogue.name}: choose from 0 to {last}")

    def __str__(self) -> str:
        return prefix(self.catalogue) + self.text

    @property
    def text(self) -> str:
        """Write the indices, without the catalogue."""
        return "-".join(map(str, self.indices)) or "none"

    @property
    def transforms(self) -> tuple[Transform, ...]:
        return tuple(self.catalogue[index] for index in self.indices)

    @property
    def readable(self) -> str:
        """Name the transforms.

        >>> Policy((3, 1, 7)).readable
        'translateX:9 > contrast:6 > translateY:2'
        """
        return " > ".join(map(str, self.transforms)) or "none"

    @property
    def function(self) -> str:
        """Name what is computed, without identities; policies that do the same step by step have the same name.

        >>> Policy((43, 39, 18)).function
        'translateY:3 > contrast:7'
        """
        names = (transform.function for transform in self.transforms)
        return " > ".join(name for name in names if name != "identity") or "none"

    def sample(self, count: int, generator: torch.Generator) -> PolicyDraws:
        return PolicySet((self,)).sample(count, generator)

    def draws(self) -> PolicyDraws:
        """List all possible draws: each choice of signs."""
        return PolicySet((self,)).draws()

    def apply_bytes(self, images: Tensor, parameters: PolicyDraws) -> Tensor:
        return run_steps(list(self.steps(parameters)), images)

    def apply_surrogate(self, images: Tensor, parameters: PolicyDraws) -> Tensor:
        for operation, magnitudes in self.steps(parameters):
            values = to_float(operation.kernel(to_bytes(images), magnitudes), images.dtype)
            smooth = operation.surrogate(images, magnitudes) if operation.surrogate else images
            images = straight_through(smooth, values)
        return images

    def steps(self, parameters: PolicyDraws) -> Iterator[tuple[Operation, Tensor]]:
        """Pair each operation that changes anything with its magnitudes, float64 N."""
        if parameters.signs.shape[1] < len(self.indices):
            raise SettingsError(
                f"draws with {parameters.signs.shape[1]} signs for {self}, which has {len(self.indices)} steps: "
                "apply the draws of the same policy"
            )
        for step, transform in enumerate(self.transforms):
            if not transform.is_identity:
                yield transform.operation, parameters.signs[:, step].double() * transform.magnitude


@dataclass(frozen=True)
class PolicySet(BatchTransform[PolicyDraws]):
    """Several policies of one catalogue: each image draws one of them uniformly.

    >>> print(PolicySet((Policy((3, 1, 7)), Policy((43, 18, 18)))))
    3-1-7+43-18-18
    """

    policies: tuple[Policy, ...]

    def __post_init__(self) -> None:
        if not self.policies:
            raise PolicyError("a policy set without policies: give at least one, Policy(()) for no transformation")
        names = {policy.catalogue.name for policy in self.policies}
        if len({policy.catalogue for policy in self.policies}) > 1:
            raise PolicyError(f"policies of the catalogues {', '.join(sorted(names))} in one set: choose one catalogue")

    def __str__(self) -> str:
        return prefix(self.catalogue) + "+".join(policy.text for policy in self.policies)

    @property
    def catalogue(self) -> Catalogue:
        return self.policies[0].catalogue

    @property
    def readable(self) -> str:
        """Name the transforms of every policy; `parse_policy` reads it back."""
        return prefix(self.catalogue) + " + ".join(policy.readable for policy in self.policies)

    @cached_property
    def signed(self) -> Tensor:
        """Tell which steps of which member draw a sign, bool members×steps."""
        rows = [[transform.draws_sign for transform in policy.transforms] for policy in self.policies]
        width = max(map(len, rows))
        filled = [row + [False] * (width - len(row)) for row in rows]
        return torch.tensor(filled, dtype=torch.bool).view(len(rows), width)

    def sample(self, count: int, generator: torch.Generator) -> PolicyDraws:
        device = generator.device
        signed = self.signed.to(device)
        members = torch.randint(len(self.policies), (count,), generator=generator, device=device)
        bits = torch.randint(2, (count, signed.shape[1]), generator=generator, device=device)
        return PolicyDraws(members, torch.where(signed[members], 2 * bits - 1, 1).to(torch.int8))

    def draws(self) -> PolicyDraws:
        """List all possible draws: each member with each choice of its signs."""
        rows = [
            (member, signs)
            for member, signed in enumerate(self.signed.tolist())
            for signs in product(*((-1, 1) if drawn else (1,) for drawn in signed))
        ]
        members, signs = zip(*rows, strict=True)
        return PolicyDraws(torch.tensor(members), torch.tensor(signs, dtype=torch.int8).view(len(rows), -1))

    def probabilities(self, parameters: PolicyDraws) -> Tensor:
        """Return the probability of each draw, float64 N."""
        signs = self.signed.to(parameters.members.device).sum(1)[parameters.members]
        return 0.5 ** signs.double() / len(self.policies)

    def apply_bytes(self, images: Tensor, parameters: PolicyDraws) -> Tensor:
        return self.by_member(images, parameters, Policy.apply_bytes)

    def apply_surrogate(self, images: Tensor, parameters: PolicyDraws) -> Tensor:
        return self.by_member(images, parameters, Policy.apply_surrogate)

    def by_member(
        self, images: Tensor, parameters: PolicyDraws, apply: Callable[[Policy, Tensor, PolicyDraws], Tensor]
    ) -> Tensor:
        """Apply each policy to the images that drew it."""
        if len(self.policies) == 1 or len(images) == 0:
            return apply(self.policies[0], images, parameters)
        if int(parameters.members.max()) >= len(self.policies):
            raise SettingsError(f"draws of more members than {self} has: apply the draws of the same policy")

        def apply_member(member: int, part: Tensor) -> Tensor:
            drawn = (parameters.members == member).nonzero().squeeze(1)
            return apply(self.policies[member], part, parameters.take(drawn))

        members = range(len(self.policies))
        return run_groups(images, parameters.members, [partial(apply_member, member) for member in members])

    def to_record(self) -> dict[str, str]:
        """Return the set as it is stored in JSON."""
        return {"catalogue": self.catalogue.name, "policy": "+".join(policy.text for policy in self.policies)}


def prefix(catalogue: Catalogue) -> str:
    """Write the catalogue in front of a policy, unless it is v1."""
    return "" if catalogue.name == CATALOGUE.name else f"{catalogue.name}/"


@dataclass(frozen=True)
class CommonTransforms:
    """What two policies have in common: catalogue indices, and functions under any index."""

    indices: frozenset[int]
    functions: frozenset[str]


def share_transforms(first: Policy, second: Policy) -> CommonTransforms:
    """List what two policies have in common; the papers form hybrids of policies without a common index.

    >>> share_transforms(Policy((42, 28, 42)), Policy((14, 48, 48)))
    CommonTransforms(indices=frozenset(), functions=frozenset({'translateY:3'}))
    """
    ours, theirs = ({transform.function for transform in policy.transforms} for policy in (first, second))
    return CommonTransforms(
        frozenset(first.indices) & frozenset(second.indices), frozenset(ours & theirs) - {"identity"}
    )
