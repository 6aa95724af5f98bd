"""How strong the attacks are: which cells are run."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

GREY, COLOUR = "sample", "colour"
EARLY = "step-10"
PHASES = ("init", EARLY, "final")
PUBLISHED = ("lbfgs-l2", "adam-cosine", "lbfgs-cosine", "adam-l1", "adam-l2", "sgd-cosine")
BEST = ("fast", "strong", "adam-cosine")
REST = (
    *("adam-l1", "adam-l2", "sgd-cosine", "lbfgs-l2", "lbfgs-cosine", "dlg"),
    *("multi-scale", "class-mean", "public-image", "noise", "bn-prior", "standard"),
)
BUDGET = {"lenet": 1200, "convnet-16": 240, "resnet20-1": 300}
"""Gradients for one image: about six seconds of one core on each model, four to twelve images together."""
POLICIES = ("3-1-7", "43-18-18", "3-1-7+43-18-18")
GROUP = 4
LARGE_GROUP = 12


@dataclass(frozen=True)
class Cell:
    """A few images, attacked in one way.

    `images` are numbers in the seed's balanced order of the test split (`choose_attacked`); they were positions in the
    split itself while images were chosen by position. `evaluations`, if given, is how many gradients the attack may
    compute for one image.
    """

    part: str
    data: str
    model: str
    phase: str
    arm: str
    attack: str
    images: tuple[int, ...]
    evaluations: int | None = None

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What is attacked, by whatever attack."""
        return self.data, self.model, self.phase, self.arm

    def to_record(self) -> dict[str, Any]:
        return {**asdict(self), "images": list(self.images)}


def measured(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Say what the record of a cell asks to measure: two parts that ask the same share the answer."""
    return {name: value for name, value in cell.items() if name != "part"}


def groups(count: int, size: int = GROUP) -> list[tuple[int, ...]]:
    return [tuple(range(first, min(first + size, count))) for first in range(0, count, size)]


def published() -> Iterator[Cell]:
    """The six attacks at their published settings; `lbfgs-cosine`, by far the slowest, on one image and last."""
    for attack in sorted(PUBLISHED, key="lbfgs-cosine".__eq__):
        for phase in ("init", "final"):
            images = (0,) if attack == "lbfgs-cosine" else (0, 1, 2, 3)
            yield Cell("published", GREY, "convnet-16", phase, "none", attack, images)


def equal_budget() -> Iterator[Cell]:
    """All attacks that can be used on these models, with the same number of gradients; three get more images."""
    for data in (GREY, COLOUR):
        for model, evaluations in BUDGET.items():
            for phase in PHASES:
                for attack in (*BEST, *REST):
                    for images in groups(12 if attack in BEST else GROUP, LARGE_GROUP):
                        yield Cell("budget", data, model, phase, "none", attack, images, evaluations)


def policy_aware(model: str = "lenet-relu") -> Iterator[Cell]:
    """Someone who knows the policies beside someone who does not.

    `policy-aware` starts from the mean of the class, so `class-mean` is its control: the same start without the policy.
    All have the same number of steps, yet `policy-aware` takes the first of them once for each possible draw.
    """
    for phase in ("init", "final"):
        for policy in POLICIES:
            for attack in ("fast", "class-mean", "policy-aware"):
                for images in groups(12, LARGE_GROUP):
                    yield Cell("policy", GREY, model, phase, f"policy:{policy},no-base", attack, images, 400)


def speed(count: int = 20) -> Iterator[Cell]:
    """The published attack and the two recipes on the same images."""
    for model, together in (("lenet-relu", count), ("convnet-16", GROUP)):
        for data in (GREY, COLOUR):
            for phase in ("init", "final"):
                for images in groups(count, together):
                    for attack in BEST:
                        yield Cell("speed", data, model, phase, "none", attack, images)


PARTS: dict[str, Callable[[], Iterator[Cell]]] = {
    "speed": speed,
    "policy": policy_aware,
    "published": published,
    "budget": equal_budget,
}
