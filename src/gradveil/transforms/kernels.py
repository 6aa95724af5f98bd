"""Placeholder kernels."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from gradveil.transforms import pillow


def loop(name: str, images: Tensor, magnitudes: Tensor) -> Tensor:
    """Run Pillow over the batch, one image at a time."""
    operation = pillow.OPERATIONS[name]
    pairs = zip(images.cpu(), magnitudes.tolist(), strict=True)
    done = [pillow.to_tensor(operation(pillow.to_image(image), magnitude)) for image, magnitude in pairs]
    return torch.stack(done).to(images.device)


KERNELS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {name: partial(loop, name) for name in pillow.OPERATIONS}
