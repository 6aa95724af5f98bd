"""Defences that mix every image with others of its client."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gradveil.defences.base import Hook
from gradveil.defences.grammar import Parametrised
from gradveil.types import Batch

LARGEST_SHARE = 0.65
ROUNDS = 100


@dataclass(frozen=True, repr=False)
class Mixup(Parametrised):
    """Mix every image with one other of the batch, with shares drawn from Beta(alpha, alpha) (Zhang et al., 2018).

    Differs from Zhang et al.: the label is drawn, each with the share of its image, which gives their loss in
    expectation and keeps labels whole; and the image itself has the larger share, so that each is fed once.
    """

    alpha: float = 1.0

    name: ClassVar[str] = "mixup"
    hooks: ClassVar[tuple[Hook, ...]] = ("batch",)
    used: ClassVar[str] = (
        "nothing, because an update shows the mixture alone, and unmixing it by the known shares gave a worse picture "
        "of x than the mixture itself"
    )
    allowed: ClassVar[str] = "write mixup or mixup:A with the parameter A of the beta distribution, 0 < A ≤ 100"
    companions: ClassVar[int] = 1

    def is_allowed(self) -> bool:
        return 0 < self.alpha <= 100

    def batch(self, batch: Batch, generator: torch.Generator) -> Batch:
        gammas = torch.full((len(batch), 2), self.alpha, device=generator.device)
        draws = torch._standard_gamma(gammas, generator=generator).clamp(min=1e-30)
        shares = (draws / draws.sum(1, keepdim=True)).sort(dim=1, descending=True).values
        return mix(batch, shares, generator)


@dataclass(frozen=True, repr=False)
class InstaHide(Parametrised):
    """Mix every image with others of the client, then flip the sign of random pixels (Huang et al., 2020).

    `images` are mixed, with random shares of at most 0.65 each. Differs from Huang et al.: labels are drawn as in
    `Mixup`, and a pixel is flipped about mid-grey, so that images stay within [0, 1].
    """

    images: int = 4

    name: ClassVar[str] = "instahide"
    hooks: ClassVar[tuple[Hook, ...]] = ("batch",)
    smooth: ClassVar[bool] = False
    used: ClassVar[str] = "that flipped pixels are not smooth: it looks for T(x) without that prior; of x, nothing"
    allowed: ClassVar[str] = "write instahide or instahide:K with K images mixed into one, 2 ≤ K ≤ 16"
    companions: ClassVar[int] = 15

    def is_allowed(self) -> bool:
        return 2 <= self.images <= 16

    def batch(self, batch: Batch, generator: torch.Generator) -> Batch:
        mixed = mix(batch, draw_shares(len(batch), self.images, generator), generator)
        flips = torch.rand(mixed.images.shape, generator=generator, device=generator.device) < 0.5
        return Batch(torch.where(flips.to(mixed.images.device), 1 - mixed.images, mixed.images), mixed.labels)


def draw_shares(count: int, images: int, generator: torch.Generator) -> Tensor:
    """Draw rows of shares that sum to 1, none above 0.65, the image's own first."""
    shares = torch.rand(count, images, generator=generator, device=generator.device)
    shares = shares / shares.sum(1, keepdim=True)
    for _ in range(ROUNDS):
        bad = shares.max(1).values > LARGEST_SHARE
        if not bad.any():
            return shares
        again = torch.rand(count, images, generator=generator, device=generator.device)
        shares = torch.where(bad[:, None], again / again.sum(1, keepdim=True), shares)
    return shares.clamp(max=LARGEST_SHARE) / shares.clamp(max=LARGEST_SHARE).sum(1, keepdim=True)


def mix(batch: Batch, shares: Tensor, generator: torch.Generator) -> Batch:
    """Mix each image with others of the batch, N×K shares with its own first; draw one of their labels."""
    count, images = shares.shape
    device = batch.images.device
    pixels, labels = batch.pixels(), batch.labels
    partners = torch.stack([torch.arange(count, device=generator.device)] * images, 1)
    for column in range(1, images):
        # A shift by 1 to N − 1 never meets the image itself, unless it is alone.
        shift = torch.randint(1, max(count, 2), (count,), generator=generator, device=generator.device)
        partners[:, column] = (partners[:, 0] + shift) % count
    drawn = torch.multinomial(shares, 1, generator=generator).squeeze(1)
    partners, weights = partners.to(device), shares.to(device, pixels.dtype)
    mixed = sum((weights[:, k, None, None, None] * pixels[partners[:, k]] for k in range(images)), torch.zeros(()))
    chosen = partners[torch.arange(count, device=device), drawn.to(device)]
    return Batch(mixed.clamp(0, 1), labels[chosen])
