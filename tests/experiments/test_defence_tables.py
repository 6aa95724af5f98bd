"""The tables of privacy and accuracy, and the points of their picture."""

import re
from dataclasses import replace
from typing import Any

import pytest

from gradveil.experiments.defence_tables import ArmLine, Missing, make_line, make_lines, make_panels, render_markdown
from gradveil.experiments.defences import DefenceStudy
from gradveil.reports.pareto import draw_pareto
from tests.experiments.test_defences import TRIALS, make_study, silent


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> DefenceStudy:
    made = make_study(tmp_path_factory.mktemp("study"))
    made.run(TRIALS, silent)
    return made


def trial(arm: str, seed: int, values: list[float], gain: float = 0.0) -> dict[str, Any]:
    """Make an entry with these advantages before training, and as much more after it."""
    rows = [
        {
            "phase": phase,
            "image": image,
            "status": "ok",
            "advantage_transformed": value + extra,
            "advantage_aligned": value + extra - 1,
        }
        for phase, extra in (("init", 0.0), ("final", gain))
        for image, value in enumerate(values)
    ]
    notes = {"training": None, "bound": None}
    record = {"arm": arm, "seed": seed}
    return {"trial": record, "test_accuracy": 0.8, "training_seconds": 2.0, "notes": notes, "rows": rows}


def test_intervals_are_over_seeds() -> None:
    """Images of one model are alike: four of each of three models are not twelve."""
    alike = [trial("sign", seed, [mean, mean, mean + 0.1, mean - 0.1]) for seed, mean in enumerate((2.0, 6.0, 10.0))]
    line = make_line("sign", 3, 0, alike)
    figures = line.figures("init")
    fed = figures.advantages["fed"]
    assert fed is not None
    assert (fed.count, fed.clusters, round(fed.mean, 6)) == (12, 3, 6.0)
    assert fed.low is not None
    assert fed.low < 0, "the interval over images would begin at 3.8 dB"
    assert figures.finding == "undecided"
    assert figures.texts() == ["+6.0 ± 9.9 (+6.0)", "+5.0 ± 9.9 (+5.0)", "8 · 8", "undecided"]


def test_arms_are_compared_with_crop_flip_on_the_same_images() -> None:
    control = make_line("crop-flip", 2, 0, [trial("crop-flip", seed, [1.0, 5.0, 40.0]) for seed in range(2)])
    better = make_line("clip:1", 2, 0, [trial("clip:1", seed, [0.0, 4.0, 38.9 + 0.2 * seed]) for seed in range(2)])
    found = better.against(control, "init", "fed")
    assert found is not None
    assert (found.count, found.clusters, round(found.mean, 3)) == (6, 2, -1.0)
    assert found.high is not None
    assert found.high < 0, "unpaired, the spread of the images would hide it"
    elsewhere = make_line("clip:1", 1, 0, [trial("clip:1", 7, [0.0])])
    assert elsewhere.against(control, "init", "fed") is None


def test_a_cluster_of_random_policies_is_the_policy(study: DefenceStudy) -> None:
    plain, private, random = make_lines(TRIALS, study.entries())
    assert isinstance(plain, ArmLine)
    assert isinstance(private, ArmLine)
    assert isinstance(random, ArmLine)
    assert (plain.arm, len(plain.accuracies), len(plain.rows["final"])) == ("crop-flip", 2, 2)
    assert private.epsilon is not None
    assert plain.epsilon is None
    assert random.arm == "random-policy"
    for line in (plain, random):
        fed = line.figures("final").advantages["fed"]
        assert fed is not None
        assert (fed.count, fed.clusters, fed.low) == (2, 2, None)
    assert private.bound is not None
    assert 0.01 < private.bound < 1


def test_the_tables_have_a_line_for_each_arm(study: DefenceStudy) -> None:
    more = [*TRIALS, replace(TRIALS[0], seed=2), replace(TRIALS[0], arm="sign")]
    lines = make_lines(more, study.entries())
    lost = {"trial": replace(TRIALS[0], arm="clip:1").to_record(), "diverged": "the loss is nan"}
    (only,) = make_lines([replace(TRIALS[0], arm="clip:1")], [lost])
    assert isinstance(only, Missing)
    assert only.text() == "`clip:1` (1 diverged)"
    text = render_markdown({"trial": more}, {"trial": lines}, study.describe())
    # What leaks, what it costs, and against crop-flip, where it and the random policies are left out.
    assert len(re.findall(r"^\| `", text, re.MULTILINE)) == 3 + 3 + 1
    assert "| 1.0× |" in text
    assert "| `crop-flip` | 2 of 3 |" in text
    assert "Not run, or diverged: `sign`." in text
    assert "`lenet` on 100% of the images; the attack `fast`, told the defence, has 1 steps for each member." in text
    panels = make_panels(lines)
    assert [[point.name for point in points] for points in panels.values()] == [
        ["crop-flip", "dpsgd:noise=1:clip=1", "random-policy"]
    ] * 4
    picture = draw_pareto(panels, "trial")
    assert picture.startswith(b"\x89PNG")
