"""Small models for the tests of gradients."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gradveil import rng

SHAPE = (3, 12, 12)


def stir(model: nn.Module) -> nn.Module:
    """Set statistics and parameters of every batch normalisation at random, one channel of them dead."""
    source = rng.generator(0, "stir")
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.bias, module.running_mean):
                assert tensor is not None
                tensor.data.normal_(generator=source)
            module.weight.data[0] = 0.0
            assert module.running_var is not None
            module.running_var.uniform_(0.2, 3, generator=source)
    return model


def sequential(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(4))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "kernels of all kinds": lambda: sequential(
        nn.Conv2d(3, 5, (3, 2), padding=(1, 0), bias=False),
        nn.ReLU(),
        nn.Conv2d(5, 6, 3, stride=(2, 1), padding=2, dilation=2),
        nn.ReLU(),
        nn.Conv2d(6, 3, 1),
    ),
    "batch normalisation": lambda: sequential(
        nn.Conv2d(3, 4, 3, bias=False),  # more positions than values in a window: folded
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=3),  # fewer: not folded
        nn.BatchNorm2d(8),
        nn.ReLU(),
    ),
    "linear layers on many rows": lambda: nn.Sequential(nn.Linear(12, 5), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4)),
    "strided shortcut of few channels": lambda: sequential(nn.Conv2d(3, 4, 1, stride=2), nn.ReLU()),
}


def build(name: str) -> nn.Module:
    """Build one of `MODELS` in double precision."""
    with rng.global_state_from(rng.generator(0, "layers")):
        model = MODELS[name]()
        model(torch.rand(2, *SHAPE))  # a lazy layer learns its size
    return stir(model).double()


def make_images(count: int = 3) -> tuple[Tensor, Tensor]:
    source = rng.generator(0, "images")
    return torch.rand(count, *SHAPE, generator=source, dtype=torch.float64), torch.arange(count) % 4
