"""Training throughput: our loop against a plain one with per-image Pillow transforms in a DataLoader.

Both train the same model on the same images with random crop, flip and the policy 3-1-7, one torch thread each; the
plain loop's two workers prepare images while it computes. Start-up is not counted on either side. "Images ready" is the
plain loop on a batch that needs no preparation, and "limit" the same with our layout of tensors in memory: no faster
preparation can take our loop beyond it, and its ratio to "plain" is the most that could be reached with this network.
"""

import random
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from gradveil import data, models, rng
from gradveil.data import DataSet
from gradveil.defences import parse_arm
from gradveil.rng import generator
from gradveil.training import FAST
from gradveil.training.loop import TrainingRun
from gradveil.types import Batch

POLICY = "3-1-7"
THREADS = 1
REPEATS = 5
STEPS = {"convnet-16": 4, "resnet20-1": 8, "lenet-relu": 30}


class PlainImages(Dataset[tuple[Tensor, int]]):
    """Images transformed one by one with Pillow, as most training scripts do."""

    def __init__(self, sample: DataSet) -> None:
        self.images = [Image.fromarray(image) for image in sample.train.images[:, 0].numpy()]
        self.labels = sample.train.labels.tolist()

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = apply_policy(crop_and_flip(self.images[index]))
        return torch.from_numpy(np.array(image)).unsqueeze(0).float() / 255, self.labels[index]


def crop_and_flip(image: Image.Image) -> Image.Image:
    width, height = image.size
    left, top = random.randrange(9), random.randrange(9)
    cropped = ImageOps.expand(image, 4).crop((left, top, left + width, top + height))
    return ImageOps.mirror(cropped) if random.random() < 0.5 else cropped


def apply_policy(image: Image.Image) -> Image.Image:
    """Apply 3-1-7: translateX at level 9, contrast at level 6, translateY at level 2."""
    shift = 150 / 331 * image.size[0]
    image = image.transform(image.size, Image.Transform.AFFINE, (1, 0, sign() * shift, 0, 1, 0))
    image = ImageEnhance.Contrast(image).enhance(1 + sign() * 0.5 * 6 / 9)
    return image.transform(image.size, Image.Transform.AFFINE, (1, 0, 0, 0, 1, sign() * shift * 2 / 9))


def sign() -> int:
    return random.choice((-1, 1))


def build(name: str, sample: DataSet) -> nn.Module:
    return models.build(name, sample.shape, sample.classes, sample.mean, sample.std, rng.generator(0, "model"))


def plain_rate(name: str, sample: DataSet) -> float:
    """Train with the plain loop; give images a second."""
    model = build(name, sample).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, nesterov=True)
    batches = iter(DataLoader(PlainImages(sample), FAST.batch_size, shuffle=True, num_workers=2))

    def step() -> None:
        images, labels = next(batches)
        optimiser.zero_grad()
        F.cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return rate(step, STEPS[name])


def our_rate(name: str, sample: DataSet) -> float:
    """Train with gradveil's loop and the fast recipe; give images a second."""
    defences = parse_arm(f"policy:{POLICY}").defences
    run = TrainingRun(build(name, sample), sample, FAST, defences, 0, torch.device("cpu"))
    return rate(run.take_step, STEPS[name])


def rate(step: Callable[[], object], steps: int) -> float:
    step()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    return steps * FAST.batch_size / (time.perf_counter() - started)


def ready_rate(name: str, sample: DataSet, layout: torch.memory_format) -> float:
    """Train on one batch that is there already: what a loop would reach if its images cost nothing."""
    model = build(name, sample).train().to(memory_format=layout)  # type: ignore[call-overload]
    images, labels = sample.train.images[: FAST.batch_size].float() / 255, sample.train.labels[: FAST.batch_size]
    return rate(lambda: F.cross_entropy(model(images), labels).backward(), STEPS[name])  # type: ignore[no-untyped-call]


def feed_next(run: TrainingRun) -> Batch:
    """Let the client of a training prepare its next batch."""
    chosen = run.images.take(run.next_places())
    return run.client.feed(chosen.batch(), run.defences, generator(0, "batch"))


def preparation_ratio(sample: DataSet) -> float:
    """Compare the preparation of a batch alone, without any model."""
    images = PlainImages(sample)
    run = TrainingRun(
        build("mlp", sample), sample, FAST, parse_arm(f"policy:{POLICY}").defences, 0, torch.device("cpu")
    )
    ours = rate(lambda: feed_next(run).pixels(), 20)
    plain = rate(lambda: torch.stack([images[index][0] for index in range(FAST.batch_size)]), 5)
    return ours / plain


def main() -> None:
    """Print the table and the ratio for convnet-16."""
    torch.set_num_threads(THREADS)
    sample = data.load("fashion-mnist-sample")
    print(f"batch {FAST.batch_size}, crop-flip then {POLICY}, {THREADS} thread, {REPEATS} alternating repeats")
    heads = f"{'ours':>7} {'plain':>7} {'images ready':>13} {'limit':>7} {'ours / plain':>13} {'at most':>8}"
    print(f"{'images/s':<12} {heads}")
    ratios: dict[str, list[float]] = {}
    for name in STEPS:
        rows = [
            (
                our_rate(name, sample),
                plain_rate(name, sample),
                ready_rate(name, sample, torch.contiguous_format),
                ready_rate(name, sample, torch.channels_last),
            )
            for _ in range(REPEATS)
        ]
        ours, plain, ready, limit = (statistics.median(column) for column in zip(*rows, strict=True))
        ratios[name] = [row[0] / row[1] for row in rows]
        print(
            f"{name:<12} {ours:>7.0f} {plain:>7.0f} {ready:>13.0f} {limit:>7.0f} "
            f"{statistics.median(ratios[name]):>12.2f}x {limit / plain:>7.2f}x",
            flush=True,
        )
    prepared = [preparation_ratio(sample) for _ in range(REPEATS)]
    print(
        f"preparing the images alone: {statistics.median(prepared):.1f}x ({min(prepared):.1f} to {max(prepared):.1f})"
    )
    print(
        f"training: {statistics.median(ratios['convnet-16']):.2f}x over the plain baseline "
        f"(n={REPEATS}, min {min(ratios['convnet-16']):.2f}, max {max(ratios['convnet-16']):.2f})"
    )


if __name__ == "__main__":
    main()
