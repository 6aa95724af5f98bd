"""The small convolutional networks of the first gradient-inversion papers."""

from collections.abc import Sequence

from torch import Tensor, nn

from gradveil.models.base import Normalise


class LeNet(nn.Module):
    """Four 5×5 convolutions without pooling and one linear layer.

    With `nn.Sigmoid` and uniform ±0.5 weights this is the network of Zhu et al. (2019) with the fourth convolution of
    Zhao et al. (2020). `lenet-relu` has `nn.ReLU`, torch's own initialisation and twice the kernels: it trains well,
    and is the small model of the default audit.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        mean: Sequence[float],
        std: Sequence[float],
        activation: type[nn.Module] = nn.Sigmoid,
        uniform: float | None = 0.5,
        kernels: int = 12,
    ) -> None:
        super().__init__()
        channels, height, width = shape
        layers: list[nn.Module] = []
        for index, stride in enumerate((2, 2, 1, 1)):
            layers += [nn.Conv2d(channels if index == 0 else kernels, kernels, 5, stride, padding=2), activation()]
        self.normalise = Normalise(mean, std)
        self.body = nn.Sequential(*layers, nn.Flatten())
        self.head = nn.Linear(kernels * -(-height // 4) * -(-width // 4), classes)
        if uniform is not None:
            for parameter in self.parameters():
                nn.init.uniform_(parameter, -uniform, uniform)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(self.normalise(images)))
        return logits
