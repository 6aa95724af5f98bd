"""Transformations: our kernels against a plain loop over Pillow, on the same RGB images with the same draws.

The loop gets its images as PIL images and gives PIL images; what turning a tensor into these and back costs is shown
apart. Times are processor time of one thread, plain and ours in turn. Memory is the most that torch had allocated at
once for anything, output included, per pixel of the batch.
"""

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from PIL import Image
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from gradveil.rng import generator
from gradveil.transforms import OPERATIONS, Catalogue, Policy, PolicyDraws, Transform, pillow

THREADS = 1
REPEATS = 5
POLICIES = 20
LEVEL = 5
COUNTS = (128, 1024)
SIDES = (32, 64)
EACH = Catalogue("each", tuple(Transform(operation, LEVEL) for operation in OPERATIONS.values()))


@dataclass(frozen=True)
class Times:
    """Seconds of each repeat."""

    plain: list[float]
    ours: list[float]

    def ratios(self) -> list[float]:
        return [plain / ours for plain, ours in zip(self.plain, self.ours, strict=True)]

    def row(self) -> str:
        plain, ours = 1000 * statistics.median(self.plain), 1000 * statistics.median(self.ours)
        ratios = self.ratios()
        spread = f"{min(ratios):.1f}–{max(ratios):.1f}"
        return f"{plain:9.2f} ms  {ours:8.2f} ms  {statistics.median(ratios):6.1f}x  ({spread})"


def add(many: list[Times]) -> Times:
    """Add up the times of several policies, repeat by repeat."""
    return Times(
        [sum(repeat) for repeat in zip(*(times.plain for times in many), strict=True)],
        [sum(repeat) for repeat in zip(*(times.ours for times in many), strict=True)],
    )


def make_images(count: int, side: int) -> Tensor:
    """Make images with slopes, edges and grain, as photographs have them."""
    source = generator(0, count, side)
    slopes = torch.nn.functional.interpolate(torch.rand(count, 3, 4, 4, generator=source), size=side, mode="bicubic")
    blocks = torch.rand(count, 3, 6, 6, generator=source).repeat_interleave(side, 2).repeat_interleave(side, 3)
    grain = torch.randn(count, 3, side, side, generator=source)
    mixed = 200 * slopes + 60 * blocks[:, :, ::6, ::6][:, :, :side, :side] + 6 * grain - 10
    return mixed.clamp(0, 255).to(torch.uint8)


def plain_loop(policy: Policy, pictures: list[Image.Image], draws: PolicyDraws) -> list[Image.Image]:
    """Apply the steps image by image."""
    done = []
    for picture, signs in zip(pictures, draws.signs.tolist(), strict=True):
        for transform, sign in zip(policy.transforms, signs, strict=True):
            picture = pillow.OPERATIONS[transform.operation.name](picture, sign * transform.magnitude)
        done.append(picture)
    return done


def seconds(work: Callable[[], object], times: int = 1) -> float:
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


def compare(policy: Policy, images: Tensor, pictures: list[Image.Image]) -> Times:
    draws = policy.sample(len(images), generator(1))
    expected = torch.stack([pillow.to_tensor(picture) for picture in plain_loop(policy, pictures, draws)])
    if not torch.equal(policy.apply(images, draws), expected):
        raise AssertionError(f"{policy.readable} differs from Pillow")
    plain, ours = [], []
    for _ in range(REPEATS):
        plain.append(seconds(lambda: plain_loop(policy, pictures, draws)))
        ours.append(seconds(lambda: policy.apply(images, draws), 3))
    return Times(plain, ours)


def peak_memory(policy: Policy, images: Tensor) -> float:
    """Give the most bytes per pixel that were allocated at once."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler writes two lines for each run otherwise
    draws = policy.sample(len(images), generator(1))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        policy.apply(images, draws)
    allocated = highest = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            allocated += event.nbytes()
            highest = max(highest, allocated)
    return highest / (images.numel() / images.shape[1])


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


def run(count: int, side: int, policies: list[Policy]) -> Times:
    """Print the table of one size; give the times of all policies together."""
    images = make_images(count, side)
    pictures = [pillow.to_image(image) for image in images]
    print(f"\n{count:,} RGB images of {side}×{side}" + " " * 12 + "Pillow         ours     ratio  (min–max)")
    singles = [Policy((index,), EACH) for index in range(len(EACH))]
    for policy in singles:
        print(f"  {policy.transforms[0]!s:34}{compare(policy, images, pictures).row()}")
    mean = add([compare(policy, images, pictures) for policy in policies])
    scaled = Times([total / len(policies) for total in mean.plain], [total / len(policies) for total in mean.ours])
    print(f"  {f'mean of {len(policies)} three-step policies':34}{scaled.row()}")
    convert = seconds(lambda: torch.stack([pillow.to_tensor(pillow.to_image(image)) for image in images]))
    both = Times([plain + convert for plain in scaled.plain], scaled.ours)
    print(f"  {'the same from tensor to tensor':34}{both.row()}")
    memory = max(peak_memory(policy, images) for policy in singles + policies)
    print(f"  highest memory: {memory:.1f} bytes per pixel")
    return scaled


def main() -> None:
    choice = random.Random(0)
    policies = [Policy(tuple(choice.randrange(50) for _ in range(3))) for _ in range(POLICIES)]
    print(
        f"transformations, {THREADS} thread, {REPEATS} repeats, median (min–max); identities are skipped by ours only"
    )
    with threads(THREADS):
        results = {(count, side): run(count, side, policies) for side in SIDES for count in COUNTS}
    for side in reversed(SIDES):
        ratios = results[COUNTS[-1], side].ratios()
        name = f"transforms ({POLICIES} policies, {COUNTS[-1]:,} images of {side}×{side})"
        spread = f"(n={REPEATS}, min {min(ratios):.1f}, max {max(ratios):.1f})"
        print(f"{name}: {statistics.median(ratios):.1f}x over the plain baseline {spread}")
