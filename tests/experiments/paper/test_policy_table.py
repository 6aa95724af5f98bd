from collections.abc import Mapping

import pytest

from gradveil.experiments.paper.experiment import Material
from gradveil.experiments.paper.policy_table import HYBRID, NONE, PUBLISHED_ATTACK, arms_of
from gradveil.experiments.paper.quirks import CORRECTED, FAITHFUL
from gradveil.experiments.paper.scales import CPU, PAPERS, SMOKE
from gradveil.experiments.paper.study import Line
from gradveil.experiments.paper.table_1 import make_table
from gradveil.experiments.paper.units import LEARNER, with_models
from gradveil.experiments.paper.verdicts import FAILS, HOLDS, PARTLY, UNDECIDED
from tests.experiments.paper.made_up import attacked, results, trained

TABLE = make_table("a", CPU)


def lines(gain: float, accuracy: float = 0.6) -> list[Line]:
    """Make up a table: without a policy the strongest attack gains 4 dB, with the hybrid `gain`."""
    found: list[Line] = []
    for label in TABLE.arms:
        found += [trained(model, accuracy) for model in TABLE.models(label, CPU)]
    for label, psnr, floor, at in ((NONE, 14.0, 12.0, 4.0), (HYBRID, 9.0, 8.5, gain)):
        for attack in (PUBLISHED_ATTACK, CPU.strongest):
            found += attacked(TABLE.attacks(label, attack, CORRECTED, CPU), psnr, floor, at)
    return [*found, *attacked(TABLE.attacks(NONE, PUBLISHED_ATTACK, FAITHFUL, CPU), 15.0, 12.5, 4.5)]


def test_none_is_trained_with_the_base_augmentation_and_attacked_with_or_without() -> None:
    (faithful, _), (corrected, _) = (
        TABLE.attacks(NONE, PUBLISHED_ATTACK, quirks, CPU) for quirks in (FAITHFUL, CORRECTED)
    )
    assert faithful.model == corrected.model
    assert (faithful.model.arm, faithful.arm, corrected.arm) == ("crop-flip", "none", "crop-flip")


def test_policies_are_attacked_once_for_both_modes_and_only_the_strongest_attack_is_told() -> None:
    both = [TABLE.attacks(HYBRID, PUBLISHED_ATTACK, quirks, CPU) for quirks in (FAITHFUL, CORRECTED)]
    assert both[0] == both[1]
    assert both[0][0].arm == both[0][0].model.arm == "policy:3-1-7+43-18-18"
    assert not both[0][0].told
    assert TABLE.attacks(HYBRID, CPU.strongest, CORRECTED, CPU)[0].told


def test_units_are_models_of_every_line_and_attacks_of_every_cell() -> None:
    units = with_models(TABLE.units(CPU))
    assert len(units) == 5 + 2 * (5 + 1 + 5) + 5, "whoever learns attacks all images of a cell at once"
    assert units[0] == TABLE.models(NONE, CPU)[0]
    assert len(make_table("a", PAPERS).models("random", PAPERS)) == 10 * 3


def test_a_table_stands_beside_the_published_one() -> None:
    text = "\n".join(TABLE.render(Material(CPU, results(lines(3.9)))))
    assert "| no policy | 13.88 / 76.88 | 12.15 ± 2.06 / 78.11 | 15.00 ± 0.09 | 12 | 12.50 | 60.0 |" in text
    assert "| hybrid | 7.64 / 77.92 | 8.25 ± 1.64 / 77.47 | 9.00 ± 0.09 | 12 | 8.50 | 60.0 |" in text
    assert "| 3-1-7 | 6.579 / 70.56 | 6.77 ± 0.88 / 71.59 | not run | 0 of 12 | not run | 60.0 |" in text
    assert "| `crop-flip` | `standard-6` | 12 | 12.00 | +2.0 ± 0.1 | +4.0 ± 0.1 | +3.0 ± 0.1 | 12 of 12" in text


@pytest.mark.parametrize(("gain", "verdict"), [(0.2, PARTLY), (2.0, PARTLY), (3.9, FAILS)])
def test_the_verdict_of_a_line(gain: float, verdict: str) -> None:
    found = TABLE.judge(HYBRID, Material(CPU, results(lines(gain))))
    assert found.verdict == verdict
    assert "n = 12" in found.measured
    assert "accuracy 60.0% → 60.0%" in found.measured


def test_a_line_that_was_not_run_decides_nothing() -> None:
    assert TABLE.judge("3-1-7", Material(CPU, results(lines(1.0)))).verdict == UNDECIDED


def learnt(picked: Mapping[str, int]) -> list[Line]:
    """Let a learner pick so many images out, by line, and miss the others."""
    found: list[Line] = []
    for label, count in picked.items():
        for line in attacked(TABLE.attacks(label, LEARNER, CORRECTED, CPU), 12.0, 10.0, 1.0):
            rows = [{**row, "identified_original": place < count} for place, row in enumerate(line["rows"])]
            found.append({**line, "rows": rows})
    return found


@pytest.mark.parametrize(("picked", "verdict"), [(30, FAILS), (12, FAILS), (5, HOLDS)])
def test_the_verdict_on_who_learns(picked: int, verdict: str) -> None:
    trainings = [trained(model, 0.6) for label in TABLE.arms for model in TABLE.models(label, CPU)]
    material = Material(CPU, results(trainings, learnt({NONE: 40, HYBRID: picked})))
    found = TABLE.judge_learner(HYBRID, material)
    assert found.verdict == verdict
    assert "picked out 40% (30–50%) without" in found.measured
    assert "n = 100 and 100" in found.measured
    assert [name for name, _ in TABLE.parts("some", material)] == ["some, `standard-6`", "some, `learned`"]
    assert TABLE.judge_learner("3-1-7", material).verdict == UNDECIDED


def test_arms_of_policies() -> None:
    assert arms_of(("1", "2")) == {
        "none": ("crop-flip",),
        "1": ("policy:1",),
        "2": ("policy:2",),
        "hybrid": ("policy:1+2",),
    }
    assert make_table("b", SMOKE).arms["random"] == ("policy:19-1-18",)
