"""Contact sheets: what every operation, or every step of a policy, does to a few images."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gradveil.reports.pictures import draw_grid, to_png
from gradveil.transforms import OPERATIONS, Catalogue, Policy, PolicyDraws, PolicySet, Transform

SMALLEST = 72  # a smaller picture is enlarged by a whole factor, to this many pixels a side or more
EXTRA_LEVEL = 5

Row = tuple[str, Sequence[Tensor | None]]


def draw_catalogue(catalogue: Catalogue, images: Tensor) -> bytes:
    """Draw what each function of a catalogue does to uint8 images, and each operation that is not in it, as a PNG.

    Every image appears twice: on the left with the negative sign, on the right with the positive one.
    """
    present = {transform.operation.name for transform in catalogue.transforms}
    missing = [operation for name, operation in OPERATIONS.items() if name not in present]
    extended = catalogue.extend("sheet", *(Transform(operation, EXTRA_LEVEL) for operation in missing))
    pairs = images.repeat_interleave(2, dim=0)
    rows: list[Row] = [("original   (left -, right +)", pictures(pairs))]
    for label, index in functions(catalogue, extended):
        policy = Policy((index,), extended)
        rows.append((label, pictures(policy.apply(pairs, alternating_signs(policy, len(pairs))))))
    return draw(rows, images)


def functions(catalogue: Catalogue, extended: Catalogue) -> Iterator[tuple[str, int]]:
    """List each function once, by operation and level: its label with all its indices, and its first index."""
    order = list(OPERATIONS)
    known = {transform.operation.name: place for place, transform in enumerate(extended.transforms)}

    def key(index: int) -> tuple[int, int, int]:
        transform = extended[index]
        name = transform.operation.name
        return order.index(name) if name in order else len(order), known[name], transform.level

    seen: dict[str, list[int]] = {}
    for index in sorted(range(len(extended)), key=key):
        transform = extended[index]
        name = f"{transform} (identity)" if transform.is_identity else transform.function
        seen.setdefault(name, []).append(index)
    for name, indices in seen.items():
        numbers = ", ".join(str(index) for index in sorted(indices) if index < len(catalogue))
        yield f"{name}   {numbers or 'not in the catalogue'}", indices[0]


def alternating_signs(policy: Policy, count: int) -> PolicyDraws:
    """Make the signs −, +, −, + … for a policy of one step; all + if it draws no sign."""
    signs = torch.tensor([-1, 1], dtype=torch.int8).repeat(count // 2)[:, None]
    return PolicyDraws(torch.zeros(count, dtype=torch.int64), signs if policy.transforms[0].draws_sign else signs.abs())


def draw_policies(policies: PolicySet, images: Tensor, generator: torch.Generator) -> bytes:
    """Draw uint8 images before and after each step of every policy, as a PNG."""
    rows: list[Row] = [("original", pictures(images))]
    for policy in policies.policies:
        draws = policy.sample(len(images), generator)
        for step, transform in enumerate(policy.transforms, start=1):
            so_far = replace(policy, indices=policy.indices[:step])
            label = f"{policy}   step {step}: {transform}"
            rows.append((label, pictures(so_far.apply(images, draws))))
    return draw(rows, images)


def pictures(images: Tensor) -> list[Tensor | None]:
    return list(images / 255)


def draw(rows: Sequence[Row], images: Tensor) -> bytes:
    scale = max(1, -(-SMALLEST // min(images.shape[2:])))
    return to_png(draw_grid(rows, scale))
