"""What the published code did without saying so: each can be switched on by itself."""

from collections.abc import Collection
from dataclasses import dataclass

LOPSIDED_BASE = "lopsided-base"
CLEAN_GRADIENT = "clean-gradient"
HALVED_LOSS = "halved-loss"
CIFAR10_STATISTICS = "cifar10-statistics"
FIRST_IMAGES = "first-images"
UNIFORM_START = "uniform-start"
REPEATED_LABELS = "repeated-labels"


@dataclass(frozen=True)
class Quirk:
    """What a quirk is, what we do instead, and what it changes: a unit, or only which units are compared."""

    name: str
    published: str
    ours: str


QUIRKS: dict[str, Quirk] = {
    quirk.name: quirk
    for quirk in (
        Quirk(
            LOPSIDED_BASE,
            "images of the defended arm were cropped and flipped at random before the policy, those of the undefended "
            "arm were not",
            "the control of a policy is `crop-flip`, the same base augmentation without the policy",
        ),
        Quirk(
            CLEAN_GRADIENT,
            "noise and pruning acted in training, and the attacked gradient was clean",
            "the attack sees what the defence releases",
        ),
        Quirk(
            HALVED_LOSS,
            "the released gradient was of half the loss, and the attacker matched the gradient of the whole loss",
            "client and attacker have one loss",
        ),
        Quirk(
            CIFAR10_STATISTICS,
            "images of CIFAR-100 were normalised by the mean and deviation of CIFAR-10",
            "each data set has its own mean and deviation",
        ),
        Quirk(
            FIRST_IMAGES,
            "figures are means over the first six images of the test split",
            "images are a random choice that is balanced over the classes",
        ),
        Quirk(
            UNIFORM_START,
            "S_pri goes from uniform noise to the image, and the attack starts from normal noise",
            "both starts are scored",
        ),
        Quirk(
            REPEATED_LABELS,
            "of images with the same label only the first counts in S_acc",
            "all images count, and the score is one of an image",
        ),
    )
}
FAITHFUL = tuple(QUIRKS)
CORRECTED: tuple[str, ...] = ()
CIFAR10_MEAN, CIFAR10_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
"""Of CIFAR-10's training images, to four digits."""
SCALE_FREE = ("adam-cosine", "sgd-cosine", "lbfgs-cosine", "standard")
"""Attacks that half a gradient tells the same as the whole; `standard` is never run with quirks."""


def undefended_arm(quirks: Collection[str]) -> str:
    """Name the arm that a policy is compared with."""
    return "none" if LOPSIDED_BASE in quirks else "crop-flip"


def released_arm(arm: str, quirks: Collection[str]) -> str:
    """Name the arm whose release is attacked, for a model that was trained under `arm`."""
    return "none" if CLEAN_GRADIENT in quirks else arm


def attack_quirks(attack: str, quirks: Collection[str]) -> tuple[str, ...]:
    """Keep the quirks that change what one attack of a table finds."""
    return (HALVED_LOSS,) if HALVED_LOSS in quirks and attack not in SCALE_FREE else ()
