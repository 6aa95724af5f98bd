"""The model, the data and the training of the app."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from gradveil.data import load

MEAN, STD = 0.286, 0.353


class Net(nn.Module):
    """Two convolutions with batch normalisation, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, stride=2, padding=2)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 5, stride=2, padding=2)
        self.norm2 = nn.BatchNorm2d(32)
        self.head = nn.Linear(32 * 7 * 7, 10)

    def forward(self, images: Tensor) -> Tensor:
        hidden = F.relu(self.norm1(self.conv1(images)))
        hidden = F.relu(self.norm2(self.conv2(hidden)))
        logits: Tensor = self.head(hidden.flatten(1))
        return logits


class Pictures(Dataset[tuple[Tensor, int]]):
    """Images as the network takes them: transformed, then normalised."""

    def __init__(self, images: Tensor, labels: Tensor, transform: Callable[[Tensor], Tensor] | None = None) -> None:
        self.images, self.labels, self.transform = images, labels, transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index].float() / 255
        if self.transform is not None:
            image = self.transform(image)
        return (image - MEAN) / STD, int(self.labels[index])


def load_training(
    partition: int, partitions: int, batch_size: int, shuffle: bool, transform: Callable[[Tensor], Tensor] | None = None
) -> DataLoader[tuple[Tensor, int]]:
    """Load the images of one client."""
    split = load("fashion-mnist-sample").train
    own = slice(partition, None, partitions)
    return DataLoader(Pictures(split.images[own], split.labels[own], transform), batch_size, shuffle)


def load_test() -> DataLoader[tuple[Tensor, int]]:
    """Load the test images."""
    split = load("fashion-mnist-sample").test
    return DataLoader(Pictures(split.images, split.labels), 256)


def train(net: nn.Module, loader: DataLoader[tuple[Tensor, int]], epochs: int, learning_rate: float) -> float:
    """Train the network and return its mean loss."""
    optimizer = torch.optim.SGD(net.parameters(), learning_rate, momentum=0.9)
    net.train()
    total = 0.0
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / (epochs * len(loader))


@torch.no_grad()
def test(net: nn.Module, loader: DataLoader[tuple[Tensor, int]]) -> float:
    """Return the share of images that the network names correctly."""
    net.eval()
    correct = sum(int((net(images).argmax(1) == labels).sum()) for images, labels in loader)
    return correct / sum(len(labels) for _, labels in loader)
