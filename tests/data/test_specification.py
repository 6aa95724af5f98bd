import pytest

from gradveil.data.images import Decoding
from gradveil.data.specification import parse_specification, to_path
from gradveil.data.splits import Split
from gradveil.errors import DataError, InputError


def test_options_are_told_from_paths() -> None:
    specification = parse_specification("a/b=c/x,y,size=48,channels=1,skip-broken,test-fraction=0.3,seed=7")
    assert specification.paths == ("a/b=c/x", "y")
    assert specification.decoding() == Decoding(size=48, channels=1, skip_broken=True)
    assert specification.split() == Split(0.3, 7)


def test_without_options_the_defaults_hold() -> None:
    specification = parse_specification("here")
    assert specification.paths == ("here",)
    assert specification.decoding() == Decoding()
    assert specification.split() == Split()


@pytest.mark.parametrize("text", ["~nobody-of-that-name/images", "~no\0body/images"])
def test_the_folder_of_an_unknown_person_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="who is not known here"):
        to_path(text)


def read_all(text: str) -> object:
    specification = parse_specification(text)
    return specification.decoding(), specification.split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,siez=3", "unknown option 'siez'.*did you mean 'size'"),
        ("x,size=", "size= is not possible: give a whole number"),
        ("x,size=1.5", "give a whole number"),
        ("x,size=4", "from 8 to 1024"),
        ("x,channels=2", "1 for grey or 3 for colour"),
        ("x,test-fraction=half", "give a number"),
        ("x,test-fraction=2", "between 0 and 1"),
        ("x,skip-broken=no", "write skip-broken alone"),
    ],
)
def test_options_that_mean_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_all(text)
