import json

import pytest

from gradveil.cli.options import count, make_console
from gradveil.cli.plans import print_plan, say_plan
from gradveil.machine import Estimate

PLAN = Estimate({"cells": 1, "attacks on one image": 1, "gradients": 2400, "training steps": 0}, 150.0, ("a note",))


def test_the_line_counts_in_the_right_number_and_leaves_out_what_there_is_none_of() -> None:
    assert say_plan(PLAN) == "At most 1 cell, 1 attack on one image, 2,400 gradients: about 2 min here."


def test_a_dry_run_prints_the_line_or_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(make_console(False, False), False, "audit", PLAN)
    assert capsys.readouterr().out.splitlines() == [say_plan(PLAN), "a note"]
    print_plan(make_console(False, True), True, "audit", PLAN)
    record = json.loads(capsys.readouterr().out)
    assert (record["command"], record["counts"]["gradients"], record["seconds"]) == ("audit --dry-run", 2400, 150.0)


def test_plurals() -> None:
    assert [count(number, "reply", "replies") for number in (0, 1, 2)] == ["0 replies", "1 reply", "2 replies"]
