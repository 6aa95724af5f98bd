"""Residual networks for small images (He et al., 2016): a 3×3 stem, no pooling before the last layer."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.models.base import Normalise


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        self.first = convolution(inputs, planes, 3, stride)
        self.second = convolution(planes, planes, 3)
        self.shortcut = shortcut(inputs, planes, stride)

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.second(F.relu(self.first(images))) + self.shortcut(images))


class BottleneckBlock(nn.Module):
    """A 3×3 convolution between two 1×1 ones, and a shortcut; the stride is in the 3×3 one."""

    expansion = 4

    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        outputs = self.expansion * planes
        self.first = convolution(inputs, planes, 1)
        self.second = convolution(planes, planes, 3, stride)
        self.third = convolution(planes, outputs, 1)
        self.shortcut = shortcut(inputs, outputs, stride)

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.third(F.relu(self.second(F.relu(self.first(images))))) + self.shortcut(images))


class ResNet(nn.Module):
    """A stem of `width` channels and stages of blocks; each after the first halves the image and doubles the width."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        mean: Sequence[float],
        std: Sequence[float],
        width: int,
        block: type[BasicBlock] | type[BottleneckBlock],
        stages: Sequence[int],
    ) -> None:
        super().__init__()
        channels = width
        blocks: list[nn.Module] = []
        for stage, count in enumerate(stages):
            for index in range(count):
                planes = width * 2**stage
                blocks.append(block(channels, planes, 2 if stage > 0 and index == 0 else 1))
                channels = block.expansion * planes
        self.normalise = Normalise(mean, std)
        self.stem = convolution(shape[0], width, 3)
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        features = self.body(F.relu(self.stem(self.normalise(images))))
        logits: Tensor = self.head(features.mean((2, 3)))
        return logits


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    return nn.Identity() if stride == 1 and inputs == outputs else convolution(inputs, outputs, 1, stride)


def resnet20(
    shape: tuple[int, int, int], classes: int, mean: Sequence[float], std: Sequence[float], width: int
) -> ResNet:
    """Make a ResNet-20 that is `width` times as wide as He et al.'s; 4 in the papers."""
    return ResNet(shape, classes, mean, std, 16 * width, BasicBlock, (3, 3, 3))


def resnet18(
    shape: tuple[int, int, int], classes: int, mean: Sequence[float], std: Sequence[float], width: int = 64
) -> ResNet:
    """Make a ResNet-18 whose first stage has `width` channels."""
    return ResNet(shape, classes, mean, std, width, BasicBlock, (2, 2, 2, 2))


def resnet152(
    shape: tuple[int, int, int], classes: int, mean: Sequence[float], std: Sequence[float], width: int = 64
) -> ResNet:
    """Make a ResNet-152 whose first stage has `width` channels, and four times as many where its blocks meet."""
    return ResNet(shape, classes, mean, std, width, BottleneckBlock, (3, 8, 36, 3))
