import pytest

from gradveil import data
from gradveil.cli.image_choice import choose_images, read_places, shrink
from gradveil.errors import SettingsError

SAMPLE = data.load("fashion-mnist-sample")


def test_a_number_is_a_seeded_choice_and_a_list_is_places() -> None:
    assert len(choose_images("4", SAMPLE, 0)) == 4
    assert choose_images("4", SAMPLE, 0) != choose_images("4", SAMPLE, 1)
    assert choose_images("3, 14", SAMPLE, 0) == (3, 14)
    assert choose_images("7,", SAMPLE, 0) == (7,)


def test_more_than_there_are_is_all_of_them() -> None:
    assert sorted(choose_images("5000", SAMPLE, 0)) == list(range(len(SAMPLE.test)))


@pytest.mark.parametrize(("text", "message"), [("0", "1 or more"), ("3,3", "different"), ("1000,", "0 to 999")])
def test_wrong_places_are_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        choose_images(text, SAMPLE, 0)


@pytest.mark.parametrize("text", ["many", "-4", "", "1.5", "1;2"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="give a number, or places"):
        read_places(text)


def test_scores_shrink_to_what_attacks_leave() -> None:
    said: list[str] = []
    assert shrink(40, SAMPLE, said.append) == 40
    assert said == []
    assert shrink(900, SAMPLE, said.append) == 800
    assert said == ["fashion-mnist-sample has 1,000 test images: 800 are scored, not 900."]
