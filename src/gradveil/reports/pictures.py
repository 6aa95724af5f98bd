"""Images as PNG files, as parts of a page, and in grids."""

import base64
import io
from collections.abc import Sequence

import torch
from PIL import Image, ImageDraw
from torch import Tensor

GAP = 4


def to_image(pixels: Tensor) -> Image.Image:
    """Turn float C×H×W in [0, 1] into a picture."""
    array = (pixels.clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy()
    return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)


def to_png(image: Image.Image) -> bytes:
    """Write a picture as PNG."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def data_address(pixels: Tensor) -> str:
    """Encode a picture as a data address, so that a page needs no other file."""
    return "data:image/png;base64," + base64.b64encode(to_png(to_image(pixels))).decode()


def draw_grid(rows: Sequence[tuple[str, Sequence[Tensor | None]]], scale: int = 3) -> Image.Image:
    """Draw named rows of pictures; a missing picture is crossed out."""
    first = next(pixels for _, row in rows for pixels in row if pixels is not None)
    height, width = (side * scale for side in first.shape[-2:])
    margin = 8 + max(int(ImageDraw.Draw(Image.new("L", (1, 1))).textlength(name)) for name, _ in rows)
    columns = max(len(row) for _, row in rows)
    sheet = Image.new("RGB", (margin + columns * (width + GAP), len(rows) * (height + GAP)), "white")
    pen = ImageDraw.Draw(sheet)
    for line, (name, row) in enumerate(rows):
        top = line * (height + GAP)
        pen.text((4, top + height // 2 - 6), name, fill="black")
        for column, pixels in enumerate(row):
            left = margin + column * (width + GAP)
            if pixels is None:
                pen.line((left, top, left + width, top + height), fill="red")
                pen.line((left, top + height, left + width, top), fill="red")
            else:
                picture = to_image(pixels).resize((width, height), Image.Resampling.NEAREST)
                sheet.paste(picture, (left, top))
    return sheet
