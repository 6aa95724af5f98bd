"""The picture of a collaborative training."""

import pytest

from gradveil.errors import SettingsError
from gradveil.federated import RoundOutcome
from gradveil.reports import draw_rounds


def test_the_picture_shows_the_rounds() -> None:
    rounds = [RoundOutcome(number, 10, (), 2.0 / number, 0.1 * number) for number in (1, 2, 3)]
    picture = draw_rounds(rounds, "lenet")
    assert picture.startswith(b"\x89PNG")
    assert picture != draw_rounds(rounds[:2], "lenet")
    with pytest.raises(SettingsError, match="no rounds"):
        draw_rounds([], "lenet")
