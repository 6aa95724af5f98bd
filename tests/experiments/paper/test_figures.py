"""The figures, on results that are made up: what is drawn, and what is written beside it."""

import io
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from gradveil.experiments.paper import figure_1, figure_2, figure_3, figure_4, figure_5, figure_6
from gradveil.experiments.paper.drawing import Panel, draw_panels
from gradveil.experiments.paper.experiment import Material
from gradveil.experiments.paper.jobs import pictures_at
from gradveil.experiments.paper.policy_table import HYBRID, NONE, PUBLISHED_ATTACK
from gradveil.experiments.paper.quirks import FAITHFUL
from gradveil.experiments.paper.scales import CPU, SMOKE
from gradveil.experiments.paper.study import Line
from gradveil.experiments.paper.table_1 import make_table
from gradveil.experiments.single_transforms import single_policies
from tests.experiments.paper.made_up import attacked, line, results, scored, trained


def size_of(png: bytes) -> tuple[int, int]:
    size: tuple[int, int] = Image.open(io.BytesIO(png)).size
    return size


@pytest.mark.parametrize("module", [figure_1, figure_2, figure_3, figure_4, figure_5, figure_6])
def test_a_figure_of_nothing_is_not_drawn(module: object) -> None:
    made = module.render(Material(CPU, results()))  # type: ignore[attr-defined]
    assert made.figures == {}
    assert made.lines


def test_figure_1_has_both_starts() -> None:
    lines = []
    for start in figure_1.STARTS:
        for policy in figure_1.NAMES:
            unit = figure_1.score_of(policy, start, SMOKE)
            lines.append(line(unit, scores=[0.5] * 4, points=[0.0, 0.5, 1.0], curves=[[0.1, 0.4, 1.0]] * 4))
    made = figure_1.render(Material(SMOKE, results(lines)))
    assert set(made.figures) == {"figure-1-uniform.png", "figure-1-normal.png"}
    assert "| 3-1-7 | normal | 0.500 | 4 |" in made.lines


def test_figure_2_draws_different_policies_and_correlates_them() -> None:
    policies = figure_2.random_policies(50)
    assert policies == figure_2.random_policies(50)
    assert len(set(policies)) == 50
    assert policies[:8] == figure_2.random_policies(8)
    lines: list[Line] = []
    for place, policy in enumerate(policies):
        lines.append(scored(figure_2.score_of(policy, CPU), 0.01 * place))
        lines += attacked(figure_2.attacks_of(policy, CPU), 10 + 0.1 * place, 9 + 0.1 * place + 0.5 * (place % 2), 1.0)
    found = figure_2.correlations(figure_2.make_points(Material(CPU, results(lines))))
    assert found["psnr_transformed"] is not None
    assert found["psnr_transformed"].r > 0.99
    assert found["gain"] is not None
    assert abs(found["gain"].r) < 0.3
    made = figure_2.render(Material(CPU, results(lines)))
    assert size_of(made.figures["figure-2.png"])[0] > 1000


def test_figure_2_attacks_for_as_many_steps_as_published() -> None:
    assert {unit.steps for unit in figure_2.attacks_of("3-1-7", CPU)} == {2500}


def test_figure_3_writes_where_the_curves_end() -> None:
    lines = [trained(figure_3.model_of(label, CPU), 0.6) for label in (NONE, HYBRID)]
    made = figure_3.render(Material(CPU, results(lines)))
    assert "| hybrid | 0.50 | 60.0 | 60.0 | 60 |" in made.lines
    assert "| 3-1-7 | not run | not run | not run | not run |" in made.lines
    assert set(made.figures) == {"figure-3.png"}


def test_figure_4_is_drawn_of_kept_pictures_only(tmp_path: Path) -> None:
    lines: list[Line] = []
    for label in (NONE, HYBRID):
        unit = figure_4.first_attack("c", label, CPU)
        lines += attacked([unit], 12.0, 10.0, 1.0)
    material = Material(CPU, results(lines), tmp_path)
    assert figure_4.render(material).figures == {}
    (tmp_path / "pictures").mkdir()
    for label in (NONE, HYBRID):
        pictures = {name: torch.rand(6, 1, 28, 28) for name in ("original", "fed", "rebuilt")}
        save_file(pictures, pictures_at(tmp_path, figure_4.first_attack("c", label, CPU)))
    panel = figure_4.make_panel("c", material)
    assert panel is not None
    assert list(panel.rows) == list(figure_4.ROWS)
    assert [text for _, text in panel.rows["rebuilt, hybrid"]] == ["11.90 dB", "12.00 dB", "12.10 dB"]
    assert set(figure_4.render(material).figures) == {"figure-4.png"}


def test_panels_of_grey_and_colour_stand_side_by_side() -> None:
    grey = Panel("grey", {"clean": [(torch.rand(1, 8, 8), "1 dB")] * 3})
    colour = Panel("colour", {"clean": [(torch.rand(3, 8, 8), "")] * 2, "rebuilt": [(torch.rand(3, 8, 8), "")]})
    wide, narrow = size_of(draw_panels([grey, colour])), size_of(draw_panels([colour]))
    assert wide[0] > narrow[0]
    assert wide[1] == narrow[1]


def test_figure_5_ranks_all_functions_or_none() -> None:
    units = figure_5.scores_of(CPU.semi, CPU)
    assert set(units) == set(single_policies())
    lines = [scored(unit, 0.1 * place) for place, unit in enumerate(units.values())]
    assert figure_5.find_scores(CPU.semi, Material(CPU, results(lines[:-1]))) is None
    made = figure_5.render(Material(CPU, results(lines)))
    assert set(made.figures) == {"figure-5.png"}
    assert any(text.startswith("| 1 |") for text in made.lines)


def test_figure_6_averages_over_images_layer_by_layer() -> None:
    table = make_table("a", CPU)
    lines = [
        *attacked(table.attacks(NONE, PUBLISHED_ATTACK, FAITHFUL, CPU), 12, 10, 1, shallow=0.7),
        *attacked(table.attacks(figure_6.SEARCHED, PUBLISHED_ATTACK, FAITHFUL, CPU), 12, 10, 1, shallow=0.3),
    ]
    made = figure_6.render(Material(CPU, results(lines)))
    assert "| none | 0.70 | 0.70 | 0.90 | 0.90 | 12 |" in made.lines
    assert "| 3-1-7 | 0.30 | 0.30 | 0.90 | 0.90 | 12 |" in made.lines
    assert "| random | not run | not run | not run | not run | 0 |" in made.lines
    assert set(made.figures) == {"figure-6.png"}
