"""The files of a study: a page for each experiment, its figures, and the ledger."""

import os
from collections.abc import Sequence
from pathlib import Path

from gradveil.experiments.paper.experiment import Experiment, Material
from gradveil.experiments.paper.ledger import describe_scale, makers_of, write_ledger
from gradveil.experiments.paper.units import with_models
from gradveil.results import write_file

LEDGER = "reproduction.md"


def write_pages(folder: Path, chosen: Sequence[Experiment], material: Material) -> list[Path]:
    """Write the page and the figures of every experiment that was asked for."""
    paths = []
    for one in chosen:
        made = one.render(material)
        for name, picture in made.figures.items():
            write_file(folder / name, picture)
        lines = material.results.used(with_models(one.units(material.scale)))
        text = [f"# {one.title}", "", describe_scale(material.scale), "", *made.lines]
        text += ["## Where these figures come from", "", *makers_of(lines), ""]
        paths.append(folder / f"{one.name}.md")
        write_file(paths[-1], "\n".join(text))
    return paths


def write_ledger_file(ledger: Path, folder: Path, material: Material) -> None:
    """Write the ledger, with links to the pages in `folder`."""
    way = os.path.relpath(folder, ledger.parent)
    write_file(ledger, write_ledger(material, "" if way == "." else f"{way}/"))
