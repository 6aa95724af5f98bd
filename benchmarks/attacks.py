"""Attack speed: ours against the published loop, written plainly.

The plain loop attacks one image at a time, as the published code does: autograd with a graph through the gradient,
backward through everything, Adam on signs, total variation, clamping. It is timed over 200 iterations and scaled
linearly to its 4,800; its PSNR comes from `attacks_published.json`, the rows of `adam-cosine` in the journal of
`gradveil reproduce attacks --part speed`; `python -m benchmarks.attacks JOURNAL MODEL` writes that file again. Ours is
the whole `fast` recipe on the same images. One thread; processor time, so that other work on the machine does not
count. The model is trained first if it is not in `runs/attacks`.
"""

import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil import data
from gradveil.attacks import GradientMatching, find_attack
from gradveil.client import local_update
from gradveil.data import DataSet
from gradveil.experiments.attacks import GREY, Cell, Study
from gradveil.journal import Journal
from gradveil.metrics import psnr
from gradveil.models import ModelSpec
from gradveil.results import to_json, write_file
from gradveil.rng import generator
from gradveil.types import Batch, Task, Update

PUBLISHED = Path(__file__).with_name("attacks_published.json")
STUDY = Path("runs/attacks")
PUBLISHED_STEPS = 4800
ITERATIONS = 200
REPEATS = 3
TIMED = ("lenet-relu", "convnet-16", "resnet20-1")


def plain_loop(model: nn.Module, sample: DataSet, update: Update, label: Tensor, iterations: int) -> float:
    """Run the published loop on one image; give processor seconds an iteration."""
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (sample.mean, sample.std))
    released = list(update.tensors.values())
    image = torch.randn(1, *sample.shape, generator=generator(0, "plain"), requires_grad=True)
    optimiser = torch.optim.Adam([image], lr=0.1)
    started = time.process_time()
    for _ in range(iterations):
        optimiser.zero_grad()
        model.zero_grad()
        loss = F.cross_entropy(model(image * std + mean), label)
        gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        product = torch.stack([(a * b).sum() for a, b in zip(gradients, released, strict=True)]).sum()
        ours = torch.stack([a.square().sum() for a in gradients]).sum().sqrt()
        theirs = torch.stack([b.square().sum() for b in released]).sum().sqrt()
        down, across = image[..., 1:, :] - image[..., :-1, :], image[..., 1:] - image[..., :-1]
        objective = 1 - product / (ours * theirs) + 1e-4 * (down.abs().mean() + across.abs().mean())
        objective.backward()  # type: ignore[no-untyped-call]
        assert image.grad is not None
        image.grad.sign_()
        optimiser.step()
        with torch.no_grad():
            image.copy_(image.clamp(-mean / std, (1 - mean) / std))
    return (time.process_time() - started) / iterations


def our_loop(task: Task, updates: list[Update], iterations: int) -> float:
    """Run our loop on several images together; give processor seconds an iteration and image."""
    attack = replace(cast(GradientMatching, find_attack("adam-cosine")), steps=iterations, together=len(updates))
    started = time.process_time()
    attack.attack_many(task, updates, [generator(0, "ours", place) for place in range(len(updates))])
    return (time.process_time() - started) / iterations / len(updates)


def release(model: nn.Module, sample: DataSet, images: list[int]) -> list[Update]:
    batches = [Batch(sample.test.images[[image]], sample.test.labels[[image]]) for image in images]
    return [local_update(model, F.cross_entropy, batch) for batch in batches]


def make_task(model: nn.Module, sample: DataSet) -> Task:
    return Task(model, F.cross_entropy, sample.shape, sample.classes, sample.mean, sample.std)


def time_iterations(sample: DataSet) -> None:
    """Print the time of one iteration on three untrained models, plain and ours by turns."""
    print(f"milliseconds an iteration and image, median of {REPEATS}, 1 thread")
    print(f"{'model':12} {'plain':>8} {'ours, 1':>8} {'ours, 8':>8}")
    for name in TIMED:
        spec = ModelSpec(name, sample.shape, sample.classes, sample.mean, sample.std)
        model = spec.build(generator(0, "model")).eval()
        task, updates = make_task(model, sample), release(model, sample, list(range(8)))
        times: list[list[float]] = [[], [], []]
        for _ in range(REPEATS):
            times[0].append(plain_loop(model, sample, updates[0], sample.test.labels[:1], 10))
            times[1].append(our_loop(task, updates[:1], 10))
            times[2].append(our_loop(task, updates, 10))
        print(f"{name:12} " + " ".join(f"{1e3 * statistics.median(values):8.1f}" for values in times))


def main() -> None:
    torch.set_num_threads(1)
    sample = data.load("fashion-mnist-sample")
    time_iterations(sample)
    known = json.loads(PUBLISHED.read_text())
    rows = known["rows"]
    images = [int(row["image"]) for row in rows]
    spec = ModelSpec(known["model"], sample.shape, sample.classes, sample.mean, sample.std)
    cell = Cell("speed", GREY, spec.name, known["phase"], "none", "adam-cosine", (0,))
    model = spec.build(generator(0, "model"))
    model.load_state_dict(Study(STUDY, {GREY: sample}).weights(cell, spec))
    task, updates = make_task(model.eval(), sample), release(model.eval(), sample, images)

    plain = [plain_loop(model, sample, updates[0], sample.test.labels[[images[0]]], ITERATIONS) for _ in range(REPEATS)]
    started = time.process_time()
    found = find_attack("fast").attack_many(task, updates, [generator(0, "attack", "fast", image) for image in images])
    ours = (time.process_time() - started) / len(images)
    scores = psnr(torch.cat([one.images for one in found]), sample.test.images[images] / 255).tolist()
    theirs = [float(row["psnr_transformed"]) for row in rows]
    gains = [PUBLISHED_STEPS * value / ours for value in plain]
    print(f"\n{spec.name}, {known['phase']}, n={len(images)} images")
    print(f"published: {statistics.mean(theirs):.2f} dB, {PUBLISHED_STEPS * statistics.median(plain):.0f} s an image")
    print(f"fast:      {statistics.mean(scores):.2f} dB, {ours:.1f} s an image")
    if statistics.mean(scores) < statistics.mean(theirs):
        print("fast does NOT reach the published PSNR here")
    print(
        f"attacks: {statistics.median(gains):.1f}x over the plain baseline "
        f"(n={REPEATS}, min {min(gains):.1f}, max {max(gains):.1f})"
    )


def write_published(journal: Path, model: str) -> None:
    """Take the published attack's rows on the trained `model` from a journal."""
    cells = [entry for entry in Journal(journal).read() if entry["cell"]["part"] == "speed"]
    chosen = [entry for entry in cells if entry["cell"]["attack"] == "adam-cosine" and entry["cell"]["model"] == model]
    rows = [row for entry in chosen for row in entry["rows"]]
    write_file(PUBLISHED, to_json({"model": model, "phase": "final", "rows": rows}))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        write_published(Path(sys.argv[1]), sys.argv[2])
    else:
        main()
