from pathlib import Path

from gradveil.experiments.paper.experiment import Material
from gradveil.experiments.paper.figure_3 import FIGURE, model_of
from gradveil.experiments.paper.pages import write_ledger_file, write_pages
from gradveil.experiments.paper.policy_table import NONE
from gradveil.experiments.paper.scales import CPU
from tests.experiments.paper.made_up import results, trained
from tests.experiments.paper.test_ledger import MADE


def test_a_page_has_its_figures_beside_it(tmp_path: Path) -> None:
    line = {**trained(model_of(NONE, CPU), 0.6), "provenance": MADE}
    (path,) = write_pages(tmp_path, [FIGURE], Material(CPU, results([line])))
    assert path == tmp_path / "figure-3.md"
    assert "![Curves](figure-3.png)" in path.read_text()
    assert (tmp_path / "figure-3.png").read_bytes().startswith(b"\x89PNG")
    assert "1 lines: gradveil 0" in path.read_text()


def test_the_ledger_links_to_the_pages_wherever_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "measured" / "paper"
    folder.mkdir(parents=True)
    write_ledger_file(tmp_path / "reproduction.md", folder, Material(CPU, results()))
    assert "(measured/paper/claim-1.md)" in (tmp_path / "reproduction.md").read_text()
    write_ledger_file(folder / "reproduction.md", folder, Material(CPU, results()))
    assert "(claim-1.md)" in (folder / "reproduction.md").read_text()
