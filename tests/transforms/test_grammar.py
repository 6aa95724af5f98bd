import contextlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradveil.errors import InputError, PolicyError
from gradveil.transforms import CATALOGUE, CATALOGUES, Policy, PolicySet, from_record, parse_policy

members = st.lists(st.integers(0, 49), max_size=3).map(tuple)
policy_sets = st.builds(
    lambda texts, name: PolicySet(tuple(Policy(text, CATALOGUES[name]) for text in texts)),
    st.lists(members, min_size=1, max_size=4),
    st.sampled_from(sorted(CATALOGUES)),
)


@given(policy_sets)
def test_what_is_printed_is_read_back(policies: PolicySet) -> None:
    assert parse_policy(str(policies)) == policies


@given(policy_sets)
def test_names_are_read_back_as_the_same_functions(policies: PolicySet) -> None:
    read = parse_policy(policies.readable)
    assert read.readable == policies.readable
    assert [policy.function for policy in read.policies] == [policy.function for policy in policies.policies]


@given(policy_sets)
def test_json_is_read_back(policies: PolicySet) -> None:
    assert from_record(json.loads(json.dumps(policies.to_record()))) == policies


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("none", [()]),
        ("3-1-7", [(3, 1, 7)]),
        ("3-1-7+43-18-18", [(3, 1, 7), (43, 18, 18)]),
        ("42-28-42+14-48-48", [(42, 28, 42), (14, 48, 48)]),
        ("3-1-7+3-1-7", [(3, 1, 7), (3, 1, 7)]),
        ("none+0", [(), (0,)]),
        (" 3 - 1 - 7 + 43 ", [(3, 1, 7), (43,)]),
        ("v1/5", [(5,)]),
        ("translateX:9 > contrast:6 > translateY:2", [(3, 1, 7)]),
        ("translateX:9>equalize + 14", [(3, 9), (14,)]),
    ],
)
def test_forms(text: str, indices: list[tuple[int, ...]]) -> None:
    assert [policy.indices for policy in parse_policy(text).policies] == indices


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "nothing at character 1 is not an index"),
        ("   ", "nothing at character 4 is not an index"),
        ("99-1", "'99' at character 1 is not in catalogue v1: choose an index from 0 to 49"),
        ("3-50", "'50' at character 3 is not in catalogue v1"),
        ("3--1", "nothing at character 3 is not an index"),
        ("-1", "nothing at character 1 is not an index"),
        ("3-1-", "nothing at character 5 is not an index"),
        ("3-1-7-2", "'2' at character 7 is step 4: a policy has at most 3"),
        ("3-1-7+", "nothing at character 7 is not an index"),
        ("+3", "nothing at character 1 is not an index"),
        ("3-1-7+43-x-18", "'43-x-18' at character 7 mixes indices and names"),
        ("3.5", "'3.5' at character 1 is not an index"),
        ("03", "'03' at character 1 is not an index"),
        ("9" * 5000, f"'{'9' * 5000}' at character 1 is not an index"),
        ("3 1", "'3 1' at character 1 is not an index"),
        ("٣", "'٣' at character 1 is not an index"),
        ("None", "'None' at character 1 is not in catalogue v1"),
        ("3-1-none", "'3-1-none' at character 1 mixes indices and names"),
        (
            "translateX:4",
            "'translateX:4' at character 1 is not in catalogue v1: choose from translateX:9, translateX:5",
        ),
        ("translateX", "'translateX' at character 1 is not in catalogue v1: choose from translateX:9"),
        ("rotate:2 > blur:1", "'blur:1' at character 12 is not in catalogue v1: choose from autocontrast, brightness"),
        ("rotate:2 >", "nothing at character 11 is not in catalogue v1"),
        ("rotate:2 > 3", "'rotate:2 > 3' at character 1 mixes indices and names"),
        ("identity", "'identity' at character 1 is not in catalogue v1"),
        ("wide/99", "'99' at character 6 is not in catalogue wide"),
        ("wide/wide/3", "'wide/3' at character 6"),
    ],
    ids=lambda text: text[:30],
)
def test_malformed_policies_are_refused_at_the_wrong_part(text: str, part: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(f"policy '{text}': {part}")):
        parse_policy(text)


@given(st.text(alphabet="0123456789-+> :/noceXx", max_size=12) | st.text(max_size=8))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        policies = parse_policy(text)
        assert parse_policy(str(policies)) == policies


def test_catalogue_that_contradicts_the_text_is_refused() -> None:
    with pytest.raises(PolicyError, match="it is of catalogue wide, not of v1"):
        parse_policy("wide/3", CATALOGUE)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"policy": "3"},
        {"catalogue": "v1"},
        {"catalogue": "v1", "policy": 3},
        {"catalogue": "v1", "policy": "3", "x": 1},
    ],
    ids=str,
)
def test_records_with_missing_or_unknown_keys_are_refused(record: dict[str, object]) -> None:
    with pytest.raises(PolicyError, match="it must have the texts 'catalogue' and 'policy' and no more"):
        from_record(record)
