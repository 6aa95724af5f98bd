"""`--images`: how many test images, or which ones."""

import re
from collections.abc import Callable

from gradveil.cli.options import count
from gradveil.data import DataSet, choose_attacked
from gradveil.errors import SettingsError
from gradveil.scores import count_scorable

NUMBERS = re.compile(r"\s*\d{1,9}\s*(,\s*\d{1,9}\s*)*,?\s*", re.ASCII)


def is_list_of_places(text: str) -> bool:
    """Tell places from a number: `3,14` and `7,` are places."""
    return "," in text


def read_places(text: str) -> tuple[int, ...]:
    """Read numbers with commas between.

    >>> read_places("3, 14"), read_places("7,"), read_places("8")
    ((3, 14), (7,), (8,))
    """
    if not NUMBERS.fullmatch(text):
        raise SettingsError(f"images '{text}': give a number, or places with commas between, as in 3,14")
    return tuple(int(part) for part in text.split(",") if part.strip())


def choose_images(text: str, data: DataSet, seed: int) -> tuple[int, ...]:
    """Read `4` as four images of the seed's balanced choice, and `3,14` or `7,` as places; four of three are three."""
    total, numbers = len(data.test), read_places(text)
    if not is_list_of_places(text):
        if numbers[0] < 1:
            raise SettingsError(f"images '{text}': give 1 or more")
        return choose_attacked(data, min(numbers[0], total), seed)
    if len(set(numbers)) < len(numbers) or max(numbers) >= total:
        raise SettingsError(f"images '{text}': give different places from 0 to {total - 1}")
    return numbers


def shrink(images: int, data: DataSet, say: Callable[[str], None]) -> int:
    """Score as many images as there are if more are asked for."""
    free = count_scorable(len(data.test))
    if images <= free or free < 1:
        return images
    say(f"{data.name} has {count(len(data.test), 'test image')}: {free} are scored, not {images}.")
    return free
