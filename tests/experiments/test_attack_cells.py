"""The cells of the attacks' study."""

from gradveil.attacks import ATTACKS
from gradveil.experiments.attack_cells import PARTS


def test_every_cell_names_what_exists() -> None:
    for part, make in PARTS.items():
        cells = list(make())
        assert cells
        assert len({str(cell) for cell in cells}) == len(cells)
        assert all(cell.part == part and cell.attack in ATTACKS for cell in cells)
