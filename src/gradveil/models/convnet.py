"""The ConvNet of Gao et al. (2021) and the one of its replication."""

from collections.abc import Sequence

from torch import Tensor, nn

from gradveil.models.base import Normalise


class ConvNet(nn.Module):
    """3×3 convolutions with batch normalisation and ReLU, two 3×3 max-pools, one linear layer.

    Convolutions of w, 2w, 2w, 4w, 4w, 4w channels come before the first pool, `late` of 4w between the pools: 2 in the
    paper's code, 3 in the replication's.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        mean: Sequence[float],
        std: Sequence[float],
        width: int = 64,
        late: int = 2,
    ) -> None:
        super().__init__()
        channels, height, breadth = shape
        early = [width, 2 * width, 2 * width, 4 * width, 4 * width, 4 * width]
        layers: list[nn.Module] = []
        for outputs in early:
            layers += convolution(channels, outputs)
            channels = outputs
        layers.append(nn.MaxPool2d(3))
        for _ in range(late):
            layers += convolution(channels, channels)
        layers += [nn.MaxPool2d(3), nn.Flatten()]
        self.normalise = Normalise(mean, std)
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(channels * (height // 9) * (breadth // 9), classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(self.normalise(images)))
        return logits


def convolution(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
