"""How exact the scores are: few nodes against many, and ours against the plain loop, on semi-trained models.

The rules are compared over random policies of three steps; the truth is a trapezoid of 101 points. Takes about four
minutes, most of them for the truth.
"""

from dataclasses import replace

import torch
from scipy import stats
from torch import Tensor, nn

from benchmarks.scores_plain import plain_privacy_at
from gradveil import data, models, rng
from gradveil.data import DataSet
from gradveil.defences import CropFlip
from gradveil.scores import PrivacyScore, choose_privacy_images, find_quadrature
from gradveil.training import FAST, train
from gradveil.transforms import Policy, parse_policy

MODELS = ("lenet-relu", "convnet-4")
TRUTH = "trapezoid-101"
RULES = ("trapezoid-21", "lobatto-9", "lobatto-7", "gauss-5", "gauss-4", "radau-4", "lobatto-5", "lobatto-4")
POLICIES = 40
IMAGES = 12
BEST = 10
PLAIN = ("none", "3-1-7")


def semi_train(name: str, sample: DataSet) -> nn.Module:
    """Train on a tenth of the images for 50 epochs."""
    settings = replace(FAST, epochs=50, fraction=0.1, test_every=50, threads=1)
    model = models.build(name, sample.shape, sample.classes, sample.mean, sample.std, rng.generator(0, "model"))
    result = train(model, sample, settings, defences=[CropFlip()], seed=0, phases=("final",))
    print(f"{name}: semi-trained, test accuracy {100 * result.test_accuracy:.1f}%")
    return model


def means(model: nn.Module, sample: DataSet, rule: str) -> Tensor:
    """Score every policy, policies×images."""
    source = rng.generator(0, "pol")
    policies = [Policy(tuple(torch.randint(50, (3,), generator=source).tolist())) for _ in range(POLICIES)]
    score = make_score(model, sample, rule)
    return torch.stack([score.score(policy) for policy in policies])


def make_score(model: nn.Module, sample: DataSet, rule: str) -> PrivacyScore:
    chosen = choose_privacy_images(sample, IMAGES, 0)
    return PrivacyScore(model, sample.test.images[chosen], sample.test.labels[chosen], quadrature=rule)


def compare_rules(model: nn.Module, sample: DataSet) -> None:
    """Print the error of a policy's mean, and what becomes of the ranking."""
    truth = means(model, sample, TRUTH)
    print(f"  {POLICIES} policies, {IMAGES} images; standard deviation over images {truth.std(1).mean():.2f}")
    for rule in RULES:
        own, true = means(model, sample, rule).mean(1), truth.mean(1)
        rank, error = stats.spearmanr(own, true)[0], (own - true).square().mean().sqrt()
        best = set(best_of(own)) & set(best_of(true))
        print(
            f"  {rule:<13} {find_quadrature(rule).gradients:>2} gradients: error {error:.4f}, "
            f"Spearman {rank:.3f}, {len(best)} of the {BEST} best"
        )


def best_of(scores: Tensor) -> list[int]:
    return [int(place) for place in scores.topk(BEST, largest=False).indices]


def compare_plain(model: nn.Module, sample: DataSet) -> None:
    """Print how far our scores are from the plain loop's."""
    score = make_score(model, sample, "trapezoid-21")
    for text in PLAIN:
        policy = parse_policy(text)
        ours = score.score(policy)
        plain = torch.tensor([plain_privacy_at(model, score, policy, place) for place in range(IMAGES)]).double()
        worst, mean = ((ours - plain).abs() / plain).max(), (ours.mean() / plain.mean() - 1).abs()
        print(f"  against the plain loop, {text}: single images within {worst:.1e}, the mean within {mean:.1e}")


def main() -> None:
    """Print both comparisons for each model."""
    torch.set_num_threads(1)
    sample = data.load("fashion-mnist-sample")
    for name in MODELS:
        model = semi_train(name, sample)
        compare_plain(model, sample)
        compare_rules(model, sample)


if __name__ == "__main__":
    main()
