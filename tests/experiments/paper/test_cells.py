import pytest

from gradveil.experiments.paper.cells import (
    Cell,
    accuracy_of,
    attack_units,
    says_diverged,
    train_units,
    with_fields,
)
from gradveil.experiments.paper.quirks import FAITHFUL, HALVED_LOSS
from gradveil.experiments.paper.scales import CPU, PAPERS, SMOKE
from gradveil.experiments.paper.study import DIVERGED
from tests.experiments.paper.made_up import attacked, line, results, row, trained

MODELS = train_units(CPU.networks["a"], "crop-flip", CPU)
UNITS = attack_units(MODELS, "none", "adam-cosine", CPU)


def test_a_cell_is_attacked_in_groups_with_the_steps_of_its_scale() -> None:
    assert [(unit.first, unit.count) for unit in UNITS] == [(0, 6), (6, 6)]
    assert {unit.steps for unit in UNITS} == {2400}
    assert attack_units(MODELS, "none", "standard", CPU)[0].steps is None
    (halved, _) = attack_units(MODELS, "none", "adam-l2", CPU, quirks=FAITHFUL)
    assert halved.quirks == (HALVED_LOSS,)
    assert len(attack_units(train_units(PAPERS.networks["a"], "none", PAPERS), "none", "adam-l2", PAPERS)) == 75
    assert [unit.count for unit in attack_units(MODELS, "none", "fast", CPU, images=8)] == [6, 2]
    assert with_fields(UNITS, told=True)[1].told


def test_figures_of_a_cell() -> None:
    cell = Cell.of(UNITS, results(attacked(UNITS, psnr=12.0, floor=10.0, gain=1.0)))
    assert (cell.count, cell.failed, cell.wanted) == (12, 0, 12)
    assert cell.mean("psnr_transformed") == pytest.approx(12.0)
    assert cell.mean("gain") == pytest.approx(2.0)
    assert cell.mean("advantage") == pytest.approx(1.0)
    interval = cell.interval("gain")
    assert interval is not None
    assert interval.low is not None
    assert interval.low < 2.0 < (interval.high or 0)
    assert cell.share("identified_original") == (0, 12)
    assert 0 < (cell.spread("psnr_transformed") or 0) < 0.2


def test_a_failed_attack_is_counted_and_no_figure() -> None:
    rows = [row(0, 12, 10, 1), {"image": 1, "status": "failed"}]
    cell = Cell.of(UNITS[:1], results(line(UNITS[0], rows=rows)))
    assert (cell.count, cell.failed, cell.wanted) == (1, 1, 6)
    assert cell.spread("psnr_transformed") is None


def test_cells_are_compared_on_the_images_of_both() -> None:
    whole = Cell.of(UNITS, results(attacked(UNITS, 12.0, 10.0, 3.0)))
    part = Cell.of(UNITS, results(attacked(UNITS[:1], 11.0, 10.0, 1.0)))
    found = whole.less(part, "advantage")
    assert found is not None
    assert found.count == 6
    assert found.mean == pytest.approx(2.0)
    assert whole.less(Cell({}, 0, 12), "gain") is None


def test_what_was_not_run_has_no_figures() -> None:
    cell = Cell.of(UNITS, results())
    assert cell.mean("gain") is None
    assert cell.interval("gain") is None
    assert cell.share("identified_original") == (0, 0)


def test_accuracy_is_a_mean_over_seeds_and_a_divergence_is_told() -> None:
    (model,) = train_units(SMOKE.networks["a"], "none", SMOKE)
    assert accuracy_of([model], results(trained(model, 0.5))) == 50.0
    assert accuracy_of([model], results()) is None
    broken = results(line(model, **{DIVERGED: "training diverged at step 3"}))
    assert accuracy_of([model], broken) is None
    assert says_diverged([model], broken)
