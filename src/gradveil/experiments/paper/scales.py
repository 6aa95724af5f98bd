"""The three sizes of the study: `smoke` in seconds, `cpu` on two cores in about ten hours, `paper` as published."""

from dataclasses import dataclass, field, replace

from gradveil.errors import UnknownNameError
from gradveil.training import FAST, PAPER, TrainingSettings

SAMPLE, CIFAR, FASHION, TINY, TINY_100 = "sample", "cifar100", "fashion-mnist", "tiny-imagenet", "tiny-imagenet-100"


@dataclass(frozen=True)
class Network:
    """A data set and a network, how the network is trained, and which of P's it stands for."""

    data: str
    model: str
    training: TrainingSettings


@dataclass(frozen=True)
class Scale:
    """Everything that differs between the sizes.

    `networks` has P's four pairs by letter, and `tiny` the one of R's extensions; `semi` is the semi-trained model that
    scores are computed on. A cell is `images` attacked in groups of `group`; whoever learns attacks `learner_images`.
    `steps` and `restarts` replace those of the attacks that they name. `random` are the arms of the line "random".
    `decides` says whether findings may be read off the results.
    """

    name: str
    networks: dict[str, Network]
    semi: Network
    tiny: Network
    tiny_semi: Network
    anchor: Network | None
    seeds: tuple[int, ...]
    images: int
    group: int
    published_images: int
    steps: dict[str, int]
    restarts: dict[str, int]
    random: tuple[str, ...]
    strongest: str
    learner_images: int
    floor_images: int | None
    scored_images: int
    correlation_policies: int
    correlation_images: int
    search_candidates: int
    batch_sizes: tuple[int, ...]
    widths: tuple[str, ...]
    depths: tuple[str, ...]
    local_epochs: tuple[int, ...]
    equal_restarts: int
    point_steps: int | None
    decides: bool = True
    quadrature: str = "trapezoid-21"
    anchor_images: int = field(default=0)


BRIEFLY = replace(FAST, epochs=1, test_every=1, threads=1)
SMOKE = Scale(
    name="smoke",
    networks={
        letter: Network(SAMPLE, model, BRIEFLY)
        for letter, model in zip("abcd", ("lenet-relu", "mlp", "lenet-relu", "mlp"), strict=True)
    },
    semi=Network(SAMPLE, "lenet-relu", replace(BRIEFLY, fraction=0.5)),
    tiny=Network(SAMPLE, "lenet-relu", BRIEFLY),
    tiny_semi=Network(SAMPLE, "lenet-relu", replace(BRIEFLY, fraction=0.5)),
    anchor=None,
    seeds=(0,),
    images=2,
    group=2,
    published_images=2,
    steps=dict.fromkeys(("adam-cosine", "adam-l1", "adam-l2", "sgd-cosine", "lbfgs-l2", "lbfgs-cosine", "fast"), 2),
    restarts={"lbfgs-cosine": 2},
    random=("policy:19-1-18",),
    strongest="fast",
    learner_images=4,
    floor_images=100,
    scored_images=4,
    correlation_policies=8,
    correlation_images=2,
    search_candidates=8,
    batch_sizes=(1, 2),
    widths=("resnet18-w1", "resnet18-w2"),
    depths=("mlp", "lenet-relu"),
    local_epochs=(1, 2),
    equal_restarts=2,
    point_steps=2,
    decides=False,
    quadrature="trapezoid-3",
)

CIFAR_FAST = replace(FAST, epochs=5, threads=1)
FASHION_FAST = replace(FAST, epochs=2, threads=1)
TINY_FAST = replace(FAST, epochs=5, threads=1)
SEMI = replace(PAPER, epochs=50, fraction=0.1, test_every=10, threads=1)
"""As in P: a tenth of the training images, 50 epochs."""
CPU = Scale(
    name="cpu",
    networks={
        "a": Network(CIFAR, "resnet20-1", CIFAR_FAST),
        "b": Network(CIFAR, "convnet-16", replace(CIFAR_FAST, epochs=3)),
        "c": Network(FASHION, "resnet20-1", FASHION_FAST),
        "d": Network(FASHION, "convnet-16", FASHION_FAST),
    },
    semi=Network(CIFAR, "resnet20-1", SEMI),
    tiny=Network(TINY_100, "resnet20-1", TINY_FAST),
    tiny_semi=Network(TINY_100, "resnet20-1", replace(SEMI, fraction=0.5, epochs=10)),
    anchor=Network(CIFAR, "resnet20-4", replace(FAST, epochs=2, threads=1)),
    seeds=(0,),
    images=12,
    group=6,
    published_images=6,
    steps={"adam-cosine": 2400, "adam-l1": 2400, "adam-l2": 2400, "sgd-cosine": 2400, "lbfgs-cosine": 60},
    restarts={"lbfgs-cosine": 2},
    random=("policy:19-1-18",),
    strongest="standard",
    learner_images=100,
    floor_images=None,
    scored_images=100,
    correlation_policies=50,
    correlation_images=2,
    search_candidates=1500,
    batch_sizes=(1, 4, 16, 100),
    widths=("resnet18-w8", "resnet18-w16", "resnet18-w32"),
    depths=("resnet18-w16", "resnet152-w16"),
    local_epochs=(1, 2, 5),
    equal_restarts=2,
    point_steps=240,
    anchor_images=4,
)

PUBLISHED_TRAINING = replace(PAPER, epochs=200)
PAPERS = Scale(
    name="paper",
    networks={
        "a": Network(CIFAR, "resnet20-4", PUBLISHED_TRAINING),
        "b": Network(CIFAR, "convnet-64", PUBLISHED_TRAINING),
        "c": Network(FASHION, "resnet20-4", PUBLISHED_TRAINING),
        "d": Network(FASHION, "convnet-64", PUBLISHED_TRAINING),
    },
    semi=Network(CIFAR, "resnet20-4", SEMI),
    tiny=Network(TINY, "resnet20-4", PUBLISHED_TRAINING),
    tiny_semi=Network(TINY, "resnet20-4", SEMI),
    anchor=None,
    seeds=(0, 1, 2),
    images=100,
    group=4,
    published_images=6,
    steps={},
    restarts={},
    random=tuple(f"random-policy:{number}" for number in range(10)),
    strongest="standard",
    learner_images=200,
    floor_images=None,
    scored_images=100,
    correlation_policies=100,
    correlation_images=32,
    search_candidates=1500,
    batch_sizes=(1, 4, 16, 100),
    widths=("resnet18-w16", "resnet18-w64", "resnet18-w128"),
    depths=("resnet20-4", "resnet18-w64", "resnet152"),
    local_epochs=(1, 2, 5),
    equal_restarts=16,
    point_steps=None,
)
SCALES: dict[str, Scale] = {scale.name: scale for scale in (SMOKE, CPU, PAPERS)}


def find_scale(name: str) -> Scale:
    """Look a scale up by name."""
    if name not in SCALES:
        raise UnknownNameError("scale", name, SCALES)
    return SCALES[name]
