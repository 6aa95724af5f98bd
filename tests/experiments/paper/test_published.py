"""The published numbers agree with each other where both papers print them twice."""

from collections.abc import Iterator

from gradveil.attacks import ATTACKS as KNOWN_ATTACKS
from gradveil.defences import parse_arm
from gradveil.experiments import single_transforms
from gradveil.experiments.paper.published import (
    ATTACKS,
    BEST_FIVE,
    POLICIES,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    P,
    Pair,
    R,
    Value,
)


def every_pair() -> Iterator[Pair]:
    for tables in (TABLE_1, TABLE_2, TABLE_4):
        for table in tables.values():
            yield from table.values()
    yield from TABLE_3.values()
    yield from TABLE_5.values()


def test_every_value_has_its_source() -> None:
    for pair in every_pair():
        for paper, value in pair.items():
            assert value.source.startswith(f"{paper}, Table ")
            assert value.psnr is not None
            assert 4 < value.psnr < 16
            assert value.accuracy is None or 20 < value.accuracy < 100
            assert (value.spread is None) == (paper == P)


def test_cells_that_are_printed_twice_are_the_same() -> None:
    for paper in (P, R):
        assert TABLE_2["adam-cosine"]["none"][paper].psnr == TABLE_1["a"]["none"][paper].psnr
        assert TABLE_2["adam-cosine"]["hybrid"][paper].psnr == TABLE_1["a"]["hybrid"][paper].psnr
        assert TABLE_3["hybrid"][paper].psnr == TABLE_1["a"]["hybrid"][paper].psnr
        for letter in "cd":
            assert TABLE_4[letter]["none"][paper].text() == TABLE_1[letter]["none"][paper].text()


def test_names_are_ours() -> None:
    assert set(ATTACKS) == set(TABLE_2) <= set(KNOWN_ATTACKS)
    for letter, policies in POLICIES.items():
        assert set(policies) <= set(TABLE_1[letter])
        parse_arm(f"policy:{'+'.join(policies)}")
    for arm in TABLE_3:
        assert arm == "hybrid" or parse_arm(arm)
    assert BEST_FIVE == single_transforms.PUBLISHED


def test_values_are_written_as_printed() -> None:
    assert TABLE_1["a"]["3-1-7"][P].text() == "6.579 / 70.56"
    assert TABLE_2["lbfgs-l2"]["none"][R].text() == "8.61 ± 1.22"
    assert Value("P, Table 9", None, 50.0).text() == "50"
