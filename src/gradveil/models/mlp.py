"""A network of linear layers only; its gradient reveals its input exactly."""

from collections.abc import Sequence
from math import prod

from torch import Tensor, nn

from gradveil.models.base import Normalise


class MultilayerPerceptron(nn.Module):
    """Two hidden layers with ReLU."""

    def __init__(
        self, shape: tuple[int, int, int], classes: int, mean: Sequence[float], std: Sequence[float], width: int = 512
    ) -> None:
        super().__init__()
        self.normalise = Normalise(mean, std)
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(prod(shape), width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(self.normalise(images)))
        return logits
