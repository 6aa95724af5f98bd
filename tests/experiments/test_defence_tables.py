"""The table of privacy and accuracy, and the points of its picture."""

import re
from dataclasses import replace

import pytest

from gradveil.experiments.defence_tables import ArmLine, make_lines, make_panels, render_markdown
from gradveil.experiments.defences import DefenceStudy
from gradveil.reports.pareto import draw_pareto
from tests.experiments.test_defences import TRIALS, make_study, silent


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> DefenceStudy:
    made = make_study(tmp_path_factory.mktemp("study"))
    made.run(TRIALS, silent)
    return made


def test_seeds_are_pooled_and_random_policies_averaged(study: DefenceStudy) -> None:
    plain, private, random = make_lines(TRIALS, study.entries())
    assert isinstance(plain, ArmLine)
    assert isinstance(private, ArmLine)
    assert isinstance(random, ArmLine)
    assert (plain.arm, plain.trials, plain.images) == ("crop-flip", 2, 2)
    assert private.epsilon is not None
    assert plain.epsilon is None
    assert random.arm == "random-policy"
    for line in (plain, random):
        assert [figure is not None and figure.count for figure in (line.fed["final"], line.original["init"])] == [2, 2]
    assert private.bound is not None
    assert 0.01 < private.bound < 1


def test_the_table_has_a_line_for_each_arm(study: DefenceStudy) -> None:
    more = [*TRIALS, replace(TRIALS[0], seed=2), replace(TRIALS[0], arm="sign")]
    lines = make_lines(more, study.entries())
    lost = {"trial": replace(TRIALS[0], arm="clip:1").to_record(), "diverged": "the loss is nan"}
    (only,) = make_lines([replace(TRIALS[0], arm="clip:1")], [lost])
    assert only.texts(None)[:3] == ["`clip:1`", "0 of 1", "1 diverged"]
    text = render_markdown({"trial": more}, {"trial": lines}, study.describe())
    assert len(re.findall(r"^\| `", text, re.MULTILINE)) == len(lines)
    assert "| 1.0× |" in text
    assert "| `crop-flip` | 2 of 3 |" in text
    assert "| `sign` | 0 of 1 | not run |" in text
    assert "`lenet` on 100% of the images; the attack has 1 steps for each member." in text
    panels = make_panels(lines)
    assert [[point.name for point in points] for points in panels.values()] == [
        ["crop-flip", "dpsgd:noise=1:clip=1", "random-policy"]
    ] * 4
    picture = draw_pareto(panels, "trial")
    assert picture.startswith(b"\x89PNG")
