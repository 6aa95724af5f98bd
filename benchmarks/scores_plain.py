"""The scores as the published procedure takes them, one image and one gradient at a time, and how fast ours are.

The plain loop is what the tests compare our scores with, and the baseline that the search is timed against.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil import data, models, rng
from gradveil.data import DataSet
from gradveil.scores import AccuracyScore, PrivacyScore, choose_privacy_images
from gradveil.scores.policy_draws import PRIVACY_STREAM, transform_images
from gradveil.transforms import Policy, PolicySet, parse_policy
from gradveil.types import to_pixels

POINTS = 21
POLICIES = ("3-1-7", "43-18-18", "19-15-45", "2-43-21", "14-48-48")
RULES = ("trapezoid-21", "gauss-5", "lobatto-4")
IMAGES = 4
BATCHES = 4
MODELS = ("convnet-16", "resnet20-1", "lenet-relu")


def parameter_gradient(model: nn.Module, image: Tensor, label: Tensor) -> tuple[Tensor, ...]:
    """Differentiate the loss of one image, 1×C×H×W, with respect to every parameter tensor."""
    loss = F.cross_entropy(model(image), label)
    return torch.autograd.grad(loss, list(model.parameters()))


def similarity(first: Sequence[Tensor], second: Sequence[Tensor], form: str) -> float:
    """Take the cosine tensor by tensor and average, or that of the whole gradients."""
    if form == "global":
        first, second = ([torch.cat([part.flatten() for part in parts])] for parts in (first, second))
    cosines = [F.cosine_similarity(a.flatten(), b.flatten(), dim=0).item() for a, b in zip(first, second, strict=True)]
    return sum(cosines) / len(cosines)


def plain_curve(
    model: nn.Module, noise: Tensor, target: Tensor, label: Tensor, points: Sequence[float], form: str = "layerwise"
) -> list[float]:
    """Follow the similarity from the noise to the transformed image, both 1×C×H×W in [0, 1]."""
    model.eval()
    wanted = parameter_gradient(model, target, label)
    curve = []
    for point in points:
        guess = (1 - point) * noise + point * target
        curve.append(similarity(parameter_gradient(model, guess, label), wanted, form))
    return curve


def plain_privacy(model: nn.Module, noise: Tensor, target: Tensor, label: Tensor, form: str = "layerwise") -> float:
    """Take S_pri of one image by 21 points and trapezoids."""
    curve = plain_curve(model, noise, target, label, [step / (POINTS - 1) for step in range(POINTS)], form)
    return sum((left + right) / 2 for left, right in pairwise(curve)) / (POINTS - 1)


def plain_accuracy(model: nn.Module, batches: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Take S_acc as the papers' code does: normalised images with different labels, the sum, the mean over batches."""
    model.eval()
    scores = []
    for images, labels in batches:
        chosen = [place for place in range(len(labels)) if labels[place] not in labels[:place]]
        inputs = images[chosen].clone().requires_grad_()
        logits = model(inputs)
        logits.backward(torch.ones_like(logits))
        assert inputs.grad is not None
        values = np.linalg.eig(np.corrcoef(inputs.grad.flatten(1).numpy()))[0].real + 1e-5
        scores.append(-float(np.sum(np.log(values) + 1 / values)))
        model.zero_grad()
    return sum(scores) / len(scores)


def transformed(score: PrivacyScore, policy: Policy | PolicySet, place: int) -> Tensor:
    """Return the transformed image that our score uses, so that both see the same draw."""
    return to_pixels(transform_images(policy, score.images, [place], score.seed, PRIVACY_STREAM)).to(score.starts)


def plain_privacy_at(model: nn.Module, score: PrivacyScore, policy: Policy | PolicySet, place: int) -> float:
    """Take S_pri plainly with the start and the draw of our score."""
    noise, label = score.starts[place : place + 1], score.labels[place : place + 1]
    return plain_privacy(model, noise, transformed(score, policy, place), label, score.form)


def plain_accuracy_at(model: nn.Module, score: AccuracyScore, policy: Policy | PolicySet) -> float:
    """Take S_acc plainly with the draws and the batches of our score."""
    pairs = [(score.transformed(policy, places), score.labels[list(places)]) for places in score.batches]
    return plain_accuracy(model, pairs)


def build(name: str, sample: DataSet) -> nn.Module:
    return models.build(name, sample.shape, sample.classes, sample.mean, sample.std, rng.generator(0, "model"))


def seconds(work: Callable[[], object]) -> float:
    """Time in processor time, so that other work on the machine does not count."""
    started = time.process_time()
    work()
    return time.process_time() - started


def time_model(name: str, sample: DataSet) -> dict[str, list[float]]:
    """Time every way on one model, once for each policy; seconds per image, or per batch for S_acc."""
    images, labels = sample.test.images, sample.test.labels
    model = build(name, sample).eval()
    chosen = choose_privacy_images(sample, IMAGES, 0)
    scores = {rule: PrivacyScore(model, images[chosen], labels[chosen], quadrature=rule) for rule in RULES}
    accuracy = AccuracyScore(model, images, labels, form="reference", batches=BATCHES)
    times: dict[str, list[float]] = {}
    for text in ("none", *POLICIES):  # the first warms up
        policy = parse_policy(text)
        ways: dict[str, Callable[[], object]] = {
            "plain": lambda: [plain_privacy_at(model, scores[RULES[0]], policy, place) for place in range(IMAGES)],  # noqa: B023
            **{rule: partial(score.score, policy) for rule, score in scores.items()},
        }
        for way, work in ways.items():
            times.setdefault(way, []).append(seconds(work) / IMAGES)
        times.setdefault("S_acc plain", []).append(
            seconds(partial(plain_accuracy_at, model, accuracy, policy)) / BATCHES
        )
        times.setdefault("S_acc", []).append(seconds(partial(accuracy.score, policy)) / BATCHES)
    return {way: values[1:] for way, values in times.items()}


def main() -> None:
    """Print how long an image and a batch take, plainly and with ours."""
    torch.set_num_threads(1)
    sample = data.load("fashion-mnist-sample")
    print(f"ms of one thread, medians over {len(POLICIES)} policies: S_pri per image, S_acc per batch of 100,")
    print("of which the images with different labels count; ratio: plain over ours, least to greatest over policies")
    for name in MODELS:
        times = time_model(name, sample)
        for plain, way in (*(("plain", rule) for rule in RULES), ("S_acc plain", "S_acc")):
            ratios = [slow / fast for slow, fast in zip(times[plain], times[way], strict=True)]
            before, after = (1000 * statistics.median(times[key]) for key in (plain, way))
            print(
                f"{name:<11} {way:<13} plain {before:>7.1f}  ours {after:>7.1f}  {statistics.median(ratios):>5.1f}x "
                f"({min(ratios):.1f} to {max(ratios):.1f})"
            )


if __name__ == "__main__":
    main()
