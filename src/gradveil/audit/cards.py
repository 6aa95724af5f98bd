"""Readable cards: two large characters, drawn to any image shape and read by template matching."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil.errors import SettingsError
from gradveil.rng import generator

FONT = {
    "C": "3e41414122",
    "E": "7f49494941",
    "F": "7f09090901",
    "G": "3e4149497a",
    "K": "7f08142241",
    "L": "7f40404040",
    "N": "7f0408107f",
    "P": "7f09090906",
    "R": "7f09192946",
    "2": "4261514946",
    "3": "2141454b31",
    "4": "1814127f10",
    "5": "2745454539",
    "6": "3c4a494930",
    "7": "0171090503",
    "9": "064949291e",
}
"""Seven rows by five columns: one byte a column, its lowest bit on top. No character is the mirror image of another."""
CHARACTERS = 2
CHANCE: float = 1 / len(FONT) ** CHARACTERS
"""How often a picture that has nothing to do with a card reads as its text: the text is drawn, all alike likely."""
ROWS, COLUMNS, STEP = 9, 7, 6
"""A character with a margin of one on each side; the next one begins six columns later."""
LEAST = 0.6
"""A picture that correlates less with its best text is not called readable."""


@dataclass(frozen=True, eq=False)
class Card:
    """A text, and the picture of it, uint8 C×H×W."""

    text: str
    image: Tensor


def draw_cards(count: int, shape: tuple[int, int, int], seed: int) -> list[Card]:
    """Draw cards with random texts, light on dark; in colour if the images have colour."""
    source = generator(seed, "canaries")
    return [draw_card(random_text(source), shape, source) for _ in range(count)]


def random_text(source: torch.Generator) -> str:
    places = torch.randint(len(FONT), (CHARACTERS,), generator=source)
    return "".join(list(FONT)[place] for place in places.tolist())


def draw_card(text: str, shape: tuple[int, int, int], source: torch.Generator) -> Card:
    """Draw a text in the middle of a picture; ink and paper are drawn for each channel."""
    channels, height, width = shape
    scale = find_scale(height, width)
    ink = torch.zeros(height, width)
    block = torch.zeros(ROWS, STEP * (len(text) - 1) + COLUMNS)
    for place, character in enumerate(text):
        block[:, STEP * place : STEP * place + COLUMNS] += character_of(character)
    large = enlarge(block, scale)
    top, left = (height - large.shape[0]) // 2, (width - large.shape[1]) // 2
    ink[top : top + large.shape[0], left : left + large.shape[1]] = large
    dark, light = (torch.rand(2, channels, 1, 1, generator=source) * 0.2).unbind()
    return Card(text, ((dark + (1 - light - dark) * ink) * 255).round().to(torch.uint8))


def find_scale(height: int, width: int) -> int:
    """Choose the largest whole scale at which a card fits; refuse images that are too small for any."""
    needed = STEP * (CHARACTERS - 1) + COLUMNS
    scale = min(height // ROWS, width // needed)
    if scale < 1:
        raise SettingsError(f"a canary needs images of {ROWS}×{needed} pixels or more, these have {height}×{width}")
    return scale


def character_of(character: str) -> Tensor:
    """Return a character with its margin, 9×7, 1 where there is ink."""
    columns = bytes.fromhex(FONT[character])
    bits = torch.tensor([[float(column >> row & 1) for column in columns] for row in range(7)])
    return F.pad(bits, (1, 1, 1, 1))


def enlarge(bits: Tensor, scale: int) -> Tensor:
    return bits.repeat_interleave(scale, 0).repeat_interleave(scale, 1)


@cache
def templates(scale: int) -> Tensor:
    """Return every character as a normalised row."""
    return normalise(torch.stack([enlarge(character_of(one), scale).flatten() for one in FONT]))


def normalise(rows: Tensor) -> Tensor:
    centred = rows - rows.mean(1, keepdim=True)
    lengths: Tensor = centred.norm(dim=1, keepdim=True)
    return centred / lengths.clamp(min=1e-6)


def read_card(pictures: Sequence[Tensor]) -> str | None:
    """Read the text that the best of some pictures C×H×W shows; None if none is readable.

    A text may stand up to a quarter of the side off its place, mirrored, or dark on light. Whoever reads a picture that
    has nothing to do with the card gains nothing by that freedom: there is one answer.
    """
    found = [read_one(view, sign) for picture in pictures for view in views(picture) for sign in (1.0, -1.0)]
    score, text = max(found, default=(0.0, ""))
    return text if score >= LEAST else None


def views(picture: Tensor) -> tuple[Tensor, Tensor]:
    grey = picture.detach().float().cpu().mean(0)
    return grey, grey.flip(1)


def read_one(grey: Tensor, sign: float) -> tuple[float, str]:
    """Find the text with the best mean correlation over all places."""
    height, width = grey.shape
    scale = find_scale(height, width)
    pad = (width // 4, width // 4, height // 4, height // 4)
    padded = F.pad(grey[None, None], pad, mode="replicate")
    size = (ROWS * scale, COLUMNS * scale)
    patches = normalise(F.unfold(padded, size)[0].T)
    down, across = padded.shape[2] - size[0] + 1, padded.shape[3] - size[1] + 1
    alike = (sign * patches @ templates(scale).T).view(down, across, len(FONT))
    best, which = alike.max(2)
    last = across - STEP * scale * (CHARACTERS - 1)
    starts = [STEP * scale * place for place in range(CHARACTERS)]
    total = torch.stack([best[:, start : start + last] for start in starts]).mean(0)
    row, column = divmod(int(total.argmax()), last)
    text = "".join(list(FONT)[int(which[row, column + start])] for start in starts)
    return float(total[row, column]), text
