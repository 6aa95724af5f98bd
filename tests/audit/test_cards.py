"""Cards can be read as they are drawn, and are not read where they are not."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradveil.audit.cards import CHANCE, FONT, Card, draw_card, draw_cards, read_card
from gradveil.errors import SettingsError
from gradveil.rng import generator

SHAPES = [(1, 28, 28), (3, 32, 32), (3, 64, 64), (1, 9, 13), (3, 40, 30)]
TEXTS = st.text(alphabet=list(FONT), min_size=2, max_size=2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_card_is_read(shape: tuple[int, int, int]) -> None:
    for card in draw_cards(8, shape, 3):
        assert card.image.shape == shape
        assert card.image.dtype == torch.uint8
        assert read_card([card.image / 255]) == card.text


@given(text=TEXTS, mirrored=st.booleans(), inverted=st.booleans(), down=st.integers(-5, 5), across=st.integers(-1, 1))
def test_a_card_is_read_mirrored_inverted_and_moved(
    text: str, mirrored: bool, inverted: bool, down: int, across: int
) -> None:
    picture = draw_card(text, (3, 32, 32), generator(0)).image / 255
    picture = torch.roll(picture, (down, across), (1, 2))
    picture = picture.flip(2) if mirrored else picture
    assert read_card([1 - picture if inverted else picture]) == text


def test_noise_and_flat_pictures_are_not_readable() -> None:
    noise = torch.rand(20, 1, 28, 28, generator=generator(1))
    assert [read_card([picture]) for picture in noise] == [None] * 20
    assert read_card([torch.full((3, 32, 32), 0.5)]) is None
    assert read_card([]) is None


def test_the_best_of_several_pictures_counts() -> None:
    card = draw_card("K9", (1, 28, 28), generator(0))
    assert read_card([torch.rand(1, 28, 28, generator=generator(2)), card.image / 255]) == "K9"


def test_texts_are_drawn_from_the_seed() -> None:
    def texts(cards: list[Card]) -> list[str]:
        return [card.text for card in cards]

    first = texts(draw_cards(6, (1, 28, 28), 0))
    assert first == texts(draw_cards(6, (1, 28, 28), 0))
    assert first != texts(draw_cards(6, (1, 28, 28), 1))
    assert CHANCE == 1 / 256


def test_images_that_are_too_small_are_refused() -> None:
    with pytest.raises(SettingsError, match="9×13 pixels or more"):
        draw_cards(1, (1, 9, 9), 0)
