"""The vision transformer (Dosovitskiy et al., 2021) in the tiny size of Touvron et al. (2021)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.models.base import Normalise

SIDE = 16


class Attention(nn.Module):
    """Multi-head self-attention in single operations: fused kernels lack the second derivative that attacks need."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        count, length, width = tokens.shape
        parts = self.project(tokens).view(count, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        weights = (query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5).softmax(-1)
        merged: Tensor = self.merge((weights @ value).transpose(1, 2).reshape(count, length, width))
        return merged


class Block(nn.Module):
    """Attention and a perceptron of four times the width, each after layer normalisation and with a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width, eps=1e-6), Attention(width, heads))
        self.perceptron = nn.Sequential(
            nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attention(tokens)
        changed: Tensor = tokens + self.perceptron(tokens)
        return changed


class VisionTransformer(nn.Module):
    """Width 192, 12 blocks, 3 heads, a class token.

    Differs from Touvron et al.: patches are 4×4 up to 64 pixels a side, and larger images have 16 patches a side. Their
    patches of 16×16 are too large for small images. The right and bottom edges are padded to whole patches.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        mean: Sequence[float],
        std: Sequence[float],
        patch: int | None = None,
        width: int = 192,
        depth: int = 12,
        heads: int = 3,
    ) -> None:
        super().__init__()
        channels, *sides = shape
        patch = patch or max(4, -(-max(sides) // SIDE))
        rows, columns = (-(-side // patch) for side in sides)
        self.padding = (0, columns * patch - sides[1], 0, rows * patch - sides[0])
        self.normalise = Normalise(mean, std)
        self.embed = nn.Conv2d(channels, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, rows * columns + 1, width))
        self.body = nn.Sequential(*(Block(width, heads) for _ in range(depth)), nn.LayerNorm(width, eps=1e-6))
        self.head = nn.Linear(width, classes)
        self.initialise()

    def initialise(self) -> None:
        for parameter in (self.token, self.position):
            nn.init.trunc_normal_(parameter, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.embed(F.pad(self.normalise(images), self.padding)).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(patches), -1, -1), patches], 1) + self.position
        logits: Tensor = self.head(self.body(tokens)[:, 0])
        return logits
