import json

import pytest

from gradveil.cli.options import make_console, print_json


@pytest.mark.parametrize(
    ("quiet", "as_json", "shown"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_the_console_is_silent_for_scripts(
    quiet: bool, as_json: bool, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    make_console(quiet, as_json).print("a table")
    assert ("a table" in capsys.readouterr().out) == shown


def test_a_record_is_printed_as_json_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "é", "values": [1, 2.5]})
    assert json.loads(capsys.readouterr().out) == {"name": "é", "values": [1, 2.5]}
    with pytest.raises(ValueError, match="JSON compliant"):
        print_json({"value": float("nan")})
