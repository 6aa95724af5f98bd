import pytest

from gradveil.experiments.paper.registry import ALL, EXPERIMENTS, GROUPS, experiments_of
from gradveil.experiments.paper.scales import SCALES, Scale
from gradveil.experiments.paper.units import with_models


def test_every_published_table_figure_and_claim_has_its_experiment() -> None:
    wanted = [f"table-1{part}" for part in "abcd"]
    wanted += ["table-2", "table-3", "table-4a", "table-4b", "table-5", *(f"figure-{number}" for number in range(1, 7))]
    wanted += [*(f"claim-{number}" for number in range(1, 8)), "extension-1", "extension-2", "quirks", "anchor"]
    assert set(wanted) < set(EXPERIMENTS)
    assert set(GROUPS[ALL]) == set(EXPERIMENTS)
    assert len(GROUPS[ALL]) == len(EXPERIMENTS)
    assert [one.name for one in experiments_of("table-4")] == ["table-4a", "table-4b"]


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_units_have_keys_of_their_own(scale: Scale) -> None:
    units = with_models([unit for one in experiments_of("all") for unit in one.units(scale)])
    assert len({unit.key for unit in units}) == len(units)
