"""Updates as vectors of a few thousand numbers, one for each of their images, for attacks that learn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn import functional

from gradveil.attacks.analytic import linear_layers
from gradveil.rng import derive
from gradveil.types import Task

WIDTH = 2048
"""Longer blocks of features are sketched to this many."""
OUTLIER = 5.0
"""A block of features is at most so many times as long as the median one."""
TINY = 1e-20


@dataclass(frozen=True, eq=False)
class Features:
    """Turn updates, every tensor with a leading N, and the labels of their images, N×B, into features, (N·B)×F.

    The features of an image are standardised and have three blocks. All tensors, each scaled to a median norm of 1 over
    public images, as one direction. What entered the first and the last linear layer, read off their gradients, which
    for one image is exact. The first kernel's direction. A block longer than 2,048 becomes a count sketch: every entry
    is added, with a random sign, to a random one of 2,048 sums. After that comes the label, one-hot. With `with_norms`
    a fourth block has the logarithm of every tensor's norm, which stays true where directions are hidden.

    The images of a batch share all of it but what entered the last layer: that is read off the row of the image's own
    label, where it weighs most. After its label come the labels of all, and how many with the same one came before it.
    """

    names: tuple[str, ...]
    linear: tuple[str, ...]
    classes: int
    images: int
    seed: int
    scales: Mapping[str, float]
    with_norms: bool = False
    limits: tuple[float, ...] = ()
    centre: Tensor = field(default_factory=lambda: torch.zeros(1))
    spread: Tensor = field(default_factory=lambda: torch.ones(1))

    @classmethod
    def fit(
        cls,
        task: Task,
        names: Sequence[str],
        seed: int,
        examples: Sequence[tuple[Mapping[str, Tensor], Tensor]],
        with_norms: bool = False,
    ) -> "Features":
        """Find the scales from examples: updates and their labels, N×B."""
        every = [tensors for tensors, _ in examples]
        norms = {name: torch.cat([lengths(part[name].flatten(1)) for part in every]) for name in names}
        scales = {name: max(TINY, float(norm.median())) for name, norm in norms.items()}
        known = [layer for layer in linear_layers(task) if {f"{layer}.weight", f"{layer}.bias"} <= set(names)]
        linear = tuple(dict.fromkeys([*known[:1], *known[-1:]]))
        plain = cls(tuple(names), linear, task.classes, examples[0][1].shape[1], seed, scales, with_norms)
        blocks = [torch.cat(part) for part in zip(*(plain.blocks(*one) for one in examples), strict=True)]
        limits = tuple(OUTLIER * max(TINY, float(lengths(block).median())) for block in blocks)
        limited = replace(plain, limits=limits)
        joined = torch.cat([limited.limit(blocks), limited.labels(torch.cat([labels for _, labels in examples]))], 1)
        spread = joined.std(0)
        return replace(
            limited, centre=joined.mean(0), spread=spread.clamp(min=max(TINY, 1e-3 * float(spread.median())))
        )

    def __call__(self, tensors: Mapping[str, Tensor], labels: Tensor) -> Tensor:
        joined = torch.cat([self.limit(self.blocks(tensors, labels)), self.labels(labels)], 1)
        # A feature that the examples never saw move says nothing; one far outside says too much.
        return ((joined - self.centre) / self.spread).clamp(-10, 10)

    @property
    def tail(self) -> int:
        """How many features, at the end, tell of labels."""
        return self.classes if self.images == 1 else 2 * self.classes + self.images

    def blocks(self, tensors: Mapping[str, Tensor], labels: Tensor) -> list[Tensor]:
        """Compute the blocks of features, each (N·B)×(at most 2,048)."""
        flat = {name: tensors[name].detach().flatten(1).float().cpu() for name in self.names}
        whole = torch.cat([flat[name] / self.scales[name] for name in self.names], 1)
        first = next((name for name in self.names if tensors[name].dim() > 2), self.names[0])
        reads = [
            self.read(tensors[f"{layer}.weight"].detach().float().cpu(), flat[f"{layer}.bias"], labels.cpu())
            for layer in self.linear
        ]
        found = [unit(whole), *reads, unit(flat[first]), *([self.norms(flat)] if self.with_norms else [])]
        shared = [self.sketch(block.nan_to_num(0, 0, 0)) for block in found]
        count = labels.numel()
        return [block if len(block) == count else block.repeat_interleave(self.images, 0) for block in shared]

    def read(self, weight: Tensor, bias: Tensor, labels: Tensor) -> Tensor:
        """Read what entered a linear layer: of one image from all rows, in a batch from those of the labels."""
        if self.images == 1 or bias.shape[1] != self.classes:
            return read_rows(weight, bias)
        slopes = bias.gather(1, labels).flatten()
        rows = weight.gather(1, labels[:, :, None].expand(-1, -1, weight.shape[2])).flatten(0, 1)
        return rows * (slopes / slopes.square().clamp(min=TINY))[:, None]

    def norms(self, flat: Mapping[str, Tensor]) -> Tensor:
        """Compare the norm of every tensor with its median over public images, by logarithms."""
        ratios = [lengths(flat[name]) / self.scales[name] for name in self.names]
        return torch.stack(ratios, 1).clamp(min=TINY).log()

    @property
    def telling(self) -> int:
        """How many features, the last ones, are norms and labels: they are right even if every direction is drawn."""
        return len(self.names) + self.tail

    def sketch(self, block: Tensor) -> Tensor:
        length = block.shape[1]
        if length <= WIDTH:
            return block
        source = torch.Generator().manual_seed(derive(self.seed, "sketch", length))
        buckets = torch.randint(WIDTH, (length,), generator=source)
        signs = 2.0 * torch.randint(2, (length,), generator=source) - 1
        return torch.zeros(len(block), WIDTH).index_add_(1, buckets, block * signs)

    def limit(self, blocks: Sequence[Tensor]) -> Tensor:
        """Shorten blocks that are far too long, as those read off a gradient that is mostly noise."""
        cut = [
            block * (limit / lengths(block).clamp(min=TINY)).clamp(max=1)[:, None]
            for block, limit in zip(blocks, self.limits, strict=True)
        ]
        return torch.cat(cut, 1)

    def labels(self, labels: Tensor) -> Tensor:
        """Tell each image its label; in a batch also those of all, and its place among images of the same label."""
        own = functional.one_hot(labels.cpu(), self.classes).float()
        if self.images == 1:
            return own.flatten(0, 1)
        counts = own.sum(1, keepdim=True).expand_as(own)
        places = functional.one_hot(count_equal_before(labels.cpu()), self.images).float()
        return torch.cat([own, counts, places], 2).flatten(0, 1)


def count_equal_before(labels: Tensor) -> Tensor:
    """Count, for each entry of N×B, the entries before it in its row that are equal.

    >>> count_equal_before(torch.tensor([[3, 5, 3, 3]]))
    tensor([[0, 0, 1, 2]])
    """
    same = labels[:, :, None] == labels[:, None, :]
    return same.tril(-1).sum(2)


def lengths(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows.detach().float().cpu(), dim=1)
    return norms


def unit(rows: Tensor) -> Tensor:
    """Bring rows to length 1."""
    return rows / lengths(rows).clamp(min=TINY)[:, None]


def read_rows(weight: Tensor, bias: Tensor) -> Tensor:
    """Read what entered a linear layer, N×inputs, from the gradients of its weight and bias: least squares."""
    power = bias.square().sum(1, keepdim=True).clamp(min=TINY)
    return torch.einsum("no,noi->ni", bias, weight.detach().float()) / power
