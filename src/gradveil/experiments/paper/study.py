"""The cache of the study: which units are there, and how those that are missing are run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gradveil.data import DataSet
from gradveil.errors import DivergenceError, SettingsError
from gradveil.experiments.paper.jobs import UnitJob
from gradveil.experiments.paper.sources import load_images
from gradveil.experiments.paper.units import TrainUnit, Unit, data_of, model_of, with_models
from gradveil.experiments.paper.weights import weights_at
from gradveil.experiments.versions import write_versions
from gradveil.journal import Journal
from gradveil.study import OnProgress, WorkItem, run_items
from gradveil.workers import Crew, Shared

JOURNAL = "journal.jsonl"
DIVERGED = "diverged"
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Results:
    """What a journal holds, by the key of its unit."""

    lines: Mapping[str, Line]

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "Results":
        """Take the first line of each unit."""
        found: dict[str, Line] = {}
        for line in lines:
            found.setdefault(line["key"], line)
        return cls(found)

    def find(self, unit: Unit) -> Line | None:
        """Return the line of a unit; None if it was not run, or if its training diverged."""
        line = self.lines.get(unit.key)
        return None if line is None or DIVERGED in line else line

    def diverged(self, unit: TrainUnit) -> bool:
        return DIVERGED in self.lines.get(unit.key, {})

    def used(self, units: Sequence[Unit]) -> list[Line]:
        """List the lines of these units that are there."""
        return [self.lines[unit.key] for unit in units if unit.key in self.lines]


@dataclass(frozen=True)
class Study:
    """A folder with a journal, weights and pictures; every unit is run at most once, on `device`."""

    folder: Path
    device: str = "cpu"

    @cached_property
    def journal(self) -> Journal:
        return Journal(self.folder / JOURNAL)

    def results(self) -> Results:
        return Results.of(self.journal.read())

    def missing(self, units: Sequence[Unit]) -> list[Unit]:
        """List what has to be run, the models first; a model whose weights are gone is trained again if needed."""
        results = self.results()
        every = with_models(units)
        open_units = [unit for unit in every if unit.key not in results.lines and not self.is_hopeless(unit, results)]
        needed = {model_of(unit) for unit in open_units}
        lost = [
            unit
            for unit in every
            if isinstance(unit, TrainUnit) and unit in needed and unit.key in results.lines and self.is_lost(unit)
        ]
        return [*lost, *open_units]

    def is_hopeless(self, unit: Unit, results: Results) -> bool:
        """Tell whether a unit needs a model whose training diverged."""
        model = model_of(unit)
        return model is not None and results.diverged(model)

    def is_lost(self, unit: TrainUnit) -> bool:
        return not weights_at(self.folder, unit).with_suffix(".json").exists()

    def check_versions(self, units: Sequence[Unit]) -> None:
        """Refuse to go on with results of other versions of what is run."""
        lines = self.results().lines
        for unit in with_models(units):
            line = lines.get(unit.key)
            if line is not None and line["versions"] != unit.versions():
                raise SettingsError(
                    f"{self.journal.path} holds results of {write_versions(line['versions'])}, and this is "
                    f"{write_versions(unit.versions())}: choose another folder with --out, or write the table of what "
                    "is there with --table"
                )

    def run(self, groups: Sequence[Sequence[Unit]], root: Path | None, crew: Crew, progress: OnProgress) -> None:
        """Run what is missing, group by group: the models of a group, then all that needs them."""
        self.check_versions([unit for units in groups for unit in units])
        shared: dict[str, Shared[DataSet]] = {}
        for units in groups:
            for trains in (True, False):
                waiting = [unit for unit in self.missing(units) if isinstance(unit, TrainUnit) == trains]
                for name in dict.fromkeys(map(data_of, waiting)):
                    if name not in shared:
                        shared[name] = crew.share(load_images(name, root, progress))
                    items = [self.item(unit, shared[name]) for unit in waiting if data_of(unit) == name]
                    run_items(self.journal, items, crew, progress, "units")

    def item(self, unit: Unit, data: Shared[DataSet]) -> WorkItem:
        key = {"key": unit.key, "unit": unit.to_record(), "versions": unit.versions()}
        return WorkItem(key, UnitJob(unit, data, self.folder, self.device), unit.name(), {DivergenceError: DIVERGED})
