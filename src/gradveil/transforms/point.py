"""Kernels that map values: a pixel's new value depends on its old value, and at most on the image's histogram.

All take uint8 images N×C×H×W and one float64 magnitude for each image, and equal Pillow to the bit.
"""

import torch
from torch import Tensor

VALUES = 256
# A 16-bit index holds the values of 128 channels, and 16-bit arithmetic is the fastest here.
CHANNELS_PER_COUNT = 2**15 // VALUES


def per_image(numbers: Tensor) -> Tensor:
    """Shape one number for each image so that it broadcasts over N×C×H×W."""
    return numbers[:, None, None, None]


def to_bytes(values: Tensor) -> Tensor:
    """Drop the fraction of values within ±32,767 and clip to 0…255, as Pillow does.

    It converts through 16-bit integers: torch converts float to uint8 one element at a time.
    """
    return values.to(torch.int16).clamp_(0, VALUES - 1).to(torch.uint8)


def invert(images: Tensor, _: Tensor) -> Tensor:
    return images.bitwise_not()


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the first `bits` bits, rounded to a whole number."""
    masks = VALUES - 2 ** (8 - bits.round())
    return images & per_image(masks).to(torch.uint8)


def solarize(images: Tensor, thresholds: Tensor) -> Tensor:
    """Invert the values that are not below the threshold."""
    ceilings = thresholds.ceil().clamp(0, VALUES).to(torch.int16)
    # The sign bit of ceiling - 1 - value, spread over all bits, inverts by exclusive or.
    flips = (per_image(ceilings) - 1 - images.to(torch.int16)) >> 15
    return images ^ flips.to(torch.uint8)


def brightness(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Blend with black, in single precision."""
    return to_bytes(images.float().mul_(per_image((1 + magnitudes).float())))


def autocontrast(images: Tensor, _: Tensor) -> Tensor:
    """Stretch each channel to 0…255, in double precision."""
    rows = images.flatten(2)
    scale, offset = stretch(rows.amin(2, keepdim=True), rows.amax(2, keepdim=True))
    # No clipping is needed: values between the extremes stay between 0 and 255.
    return rows.double().mul_(scale).add_(offset).to(torch.int16).to(torch.uint8).view_as(images)


def stretch(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the scale and offset that map low…high to 0…255; a single value stays as it is."""
    flat = high <= low
    span = (high.double() - low.double()).masked_fill_(flat, 255.0)
    # Not 255 / span: that is the reciprocal times 255 in torch, and rounds twice.
    scale = torch.full_like(span, 255.0).div_(span)
    return scale, (-low.double() * scale).masked_fill_(flat, 0.0)


def equalize(images: Tensor, _: Tensor) -> Tensor:
    return look_up(images, equalize_table(count_values(images)))


def autocontrast_table(histograms: Tensor) -> Tensor:
    """Compute the table of `autocontrast`, uint8 N×C×256."""
    present = (histograms > 0).int()
    low = present.argmax(2)
    high = VALUES - 1 - present.flip(2).argmax(2)
    scale, offset = stretch(low, high)
    ramp = torch.arange(VALUES, dtype=torch.float64, device=histograms.device)
    return to_bytes(ramp * scale[..., None] + offset[..., None])


def equalize_table(histograms: Tensor) -> Tensor:
    """Compute the table that spreads the values of each channel evenly, uint8 N×C×256."""
    counts = histograms.to(torch.int32)
    up_to = counts.cumsum(2, dtype=torch.int32)
    total = up_to[..., -1:].contiguous()
    brightest = torch.searchsorted(up_to, total)
    step = (total - counts.gather(2, brightest)) // 255
    below = up_to.sub_(counts).add_(step // 2)
    exact = torch.float32 if int(total[0, 0]) < 2**22 else torch.float64
    table = below.to(exact).div_(step.clamp(min=1)).clamp_(max=VALUES - 1).to(torch.int16).to(torch.uint8)
    unchanged = (step == 0).squeeze(2)
    if unchanged.any():
        table[unchanged] = torch.arange(VALUES, dtype=torch.uint8, device=table.device)
    return table


def count_values(images: Tensor) -> Tensor:
    """Count how often each value occurs in each channel, int64 N×C×256."""
    rows = images.flatten(2).flatten(0, 1)
    counts = [count_rows(part) for part in torch.split(rows, CHANNELS_PER_COUNT)]
    return (counts[0] if len(counts) == 1 else torch.cat(counts)).view(*images.shape[:2], VALUES)


def count_rows(rows: Tensor) -> Tensor:
    starts = torch.arange(0, VALUES * len(rows), VALUES, dtype=torch.int16, device=rows.device)
    shifted = rows.to(torch.int16).add_(starts[:, None])
    return torch.bincount(shifted.flatten(), minlength=VALUES * len(rows))


def look_up(images: Tensor, tables: Tensor) -> Tensor:
    """Replace each value by its entry in the table of its channel, uint8 N×C×256."""
    return tables.gather(2, images.flatten(2).long()).view_as(images)
