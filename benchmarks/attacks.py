"""Attack speed: ours against the published loop, written plainly.

The plain loop attacks one image at a time, as the published code does: autograd with a graph through the gradient,
backward through everything, Adam on signs, total variation, clamping. It is timed over 200 iterations and scaled
linearly to its 4,800; its PSNR comes from `attacks_published.json`, which `python -m benchmarks.attacks publish`
writes: the same settings in our loop, 20 images of `convnet-16`, untrained and trained. That takes about an hour of
one core for each phase, goes on where it was stopped, and takes the phases wanted as arguments. Ours is the whole
`fast` recipe on the same images, eight together, and the step at which it first has the published PSNR. One thread;
processor time, so that other work on the machine does not count. The model is trained first if it is not in
`runs/attacks`.
"""

import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil import data
from gradveil.attacks import GradientMatching, Restarts, find_attack
from gradveil.client import Client
from gradveil.data import DataSet
from gradveil.experiments.attack_cells import GREY, Cell, groups
from gradveil.experiments.attack_tables import find_entry
from gradveil.experiments.attacks import AttackStudy
from gradveil.losses import CrossEntropy
from gradveil.metrics import psnr
from gradveil.models import ModelSpec
from gradveil.results import to_json, write_file
from gradveil.rng import generator
from gradveil.types import Batch, Reconstruction, Task, Update

PUBLISHED = Path(__file__).with_name("attacks_published.json")
STUDY = Path("runs/attacks")
MODEL = "convnet-16"
PHASES = ("init", "final")
IMAGES = 20
PUBLISHED_STEPS = 4800
ITERATIONS = 200
REPEATS = 3


def plain_loop(model: nn.Module, sample: DataSet, update: Update, label: Tensor, iterations: int) -> float:
    """Run the published loop on one image; return processor seconds an iteration."""
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


def our_loop(task: Task, updates: Sequence[Update], iterations: int) -> float:
    """Run our loop on several images together; return processor seconds an iteration and image."""
    published = cast(GradientMatching, find_attack("adam-cosine")).with_steps(iterations)
    attack = replace(published, restarts=Restarts(together=len(updates)))
    started = time.process_time()
    attack.attack_many(task, updates, [generator(0, "ours", place) for place in range(len(updates))])
    return (time.process_time() - started) / iterations / len(updates)


def release(model: nn.Module, sample: DataSet, images: Sequence[int]) -> list[Update]:
    batches = [Batch(sample.test.images[[image]], sample.test.labels[[image]]) for image in images]
    client = Client(model)
    return [client.update(model.state_dict(), batch, (), torch.Generator()) for batch in batches]


def make_task(model: nn.Module, sample: DataSet) -> Task:
    return Task(model, CrossEntropy(), sample.shape, sample.classes, sample.mean, sample.std)


@dataclass(frozen=True)
class Race:
    """One model and phase with the published rows on it."""

    model: str
    phase: str
    rows: list[dict[str, Any]]

    @property
    def images(self) -> list[int]:
        return [int(row["image"]) for row in self.rows]

    @property
    def score(self) -> float:
        return statistics.mean(float(row["psnr_transformed"]) for row in self.rows)

    def run(self, sample: DataSet) -> None:
        """Time the plain loop and run `fast`; print both."""
        spec = ModelSpec(self.model, sample.shape, sample.classes, sample.mean, sample.std)
        model = spec.build(generator(0, "model"))
        STUDY.mkdir(parents=True, exist_ok=True)
        model.load_state_dict(
            AttackStudy(STUDY, {GREY: sample}).weights(published_cell(self.model, self.phase, (0,)), spec)
        )
        updates, label = release(model.eval(), sample, self.images), sample.test.labels[self.images[:1]]
        plain = [plain_loop(model, sample, updates[0], label, ITERATIONS) for _ in range(REPEATS)]
        sources = [generator(0, "attack", "fast", image) for image in self.images]
        started = time.process_time()
        results = find_attack("fast").attack_many(make_task(model, sample), updates, sources)
        self.report(plain, (time.process_time() - started) / len(results), sample, results)

    def report(self, plain: list[float], ours: float, sample: DataSet, results: Sequence[Reconstruction]) -> None:
        true = sample.test.images[self.images] / 255
        score = float(psnr(torch.cat([one.images for one in results]), true).mean())
        gains = [PUBLISHED_STEPS * value / ours for value in plain]
        seconds = PUBLISHED_STEPS * statistics.median(plain)
        print(f"\n{self.model}, {self.phase}, n={len(results)} images")
        print(f"published: {self.score:.2f} dB, {seconds:.0f} s an image ({ITERATIONS} iterations, scaled linearly)")
        print(f"fast:      {score:.2f} dB, {ours:.1f} s an image; {self.reached(results, true)}")
        if score < self.score:
            print("fast does NOT reach the published PSNR here")
        print(
            f"attacks on {self.model}, {self.phase}: {statistics.median(gains):.1f}x over the plain baseline "
            f"(n={REPEATS}, min {min(gains):.1f}, max {max(gains):.1f})"
        )

    def reached(self, results: Sequence[Reconstruction], true: Tensor) -> str:
        """Say when the mean PSNR of the pictures on the way first was the published one."""
        last = results[0].history[-1][0]
        for moments in zip(*(one.pictures for one in results), strict=True):
            if float(psnr(torch.cat([picture for _, picture in moments]), true).mean()) >= self.score:
                return f"the published PSNR by step {moments[0][0]} of {last}"
        return f"the published PSNR at none of the pictures noted over {last} steps"


def main() -> None:
    torch.set_num_threads(1)
    sample = data.load("fashion-mnist-sample")
    for known in json.loads(PUBLISHED.read_text())["runs"]:
        Race(known["model"], known["phase"], known["rows"]).run(sample)


def published_cell(model: str, phase: str, images: tuple[int, ...]) -> Cell:
    return Cell("speed", GREY, model, phase, "none", "adam-cosine", images)


def publish(phases: Sequence[str]) -> None:
    """Run the published settings on what the journal does not have yet, and write down all that it has."""
    torch.set_num_threads(1)
    STUDY.mkdir(parents=True, exist_ok=True)
    study = AttackStudy(STUDY, {GREY: data.load("fashion-mnist-sample")})
    wanted = {phase: [published_cell(MODEL, phase, images) for images in groups(IMAGES)] for phase in PHASES}
    for phase in phases:
        study.run(wanted[phase], lambda what, done, total: print(f"\r{what}: {done} of {total}   ", end="", flush=True))
    entries = study.journal.read()
    rows = {
        phase: [row for cell in cells if (entry := find_entry(cell, entries)) is not None for row in entry["rows"]]
        for phase, cells in wanted.items()
    }
    runs = [{"model": MODEL, "phase": phase, "rows": own} for phase, own in rows.items() if own]
    write_file(PUBLISHED, to_json({"steps": PUBLISHED_STEPS, "runs": runs}))
    print("\n" + ", ".join(f"{phase}: {len(own)} of {IMAGES} images" for phase, own in rows.items()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["publish"]:
        for unknown in set(sys.argv[2:]) - set(PHASES):
            sys.exit(f"unknown phase '{unknown}': choose from {', '.join(PHASES)}")
        publish(sys.argv[2:] or PHASES)
    else:
        main()
