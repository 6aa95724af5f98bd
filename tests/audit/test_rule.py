"""The rule of the verdict."""

import pytest

from gradveil.audit import WORDS, Rule
from gradveil.errors import InputError


def test_a_rule_goes_to_json_and_back() -> None:
    rule = Rule(epsilon=2.0, delta=0.2)
    assert Rule.from_record(rule.to_record()) == rule
    with pytest.raises(InputError, match="epsilom"):
        Rule.from_record({"epsilom": 1})


@pytest.mark.parametrize("change", [{"epsilon": 0}, {"delta": 0}, {"delta": 1}, {"gamma": 2}, {"error": 0.5}])
def test_values_out_of_range_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InputError, match="ε is in dB"):
        Rule(**change)


def test_no_outcome_is_called_private() -> None:
    assert not any("private" in words or "safe" in words for words in WORDS.values())
