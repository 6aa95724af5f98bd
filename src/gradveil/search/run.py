"""A whole search in one call: the folder, the model, the strategy, the validation, and the files."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradveil.data import DataSet
from gradveil.errors import SettingsError
from gradveil.models import factory
from gradveil.results import record, seal, to_json, write_file
from gradveil.search.baseline import Baseline, score_none
from gradveil.search.folder import MODEL, POLICIES, RESULT, opened_folder
from gradveil.search.jobs import choose_images, leave_out_scored, make_inputs
from gradveil.search.outcome import Outcome
from gradveil.search.records import Records
from gradveil.search.report import make_figures, make_policies
from gradveil.search.score_journal import ScoreJournal
from gradveil.search.scoring_model import ScoringModel, prepare_model, read_checkpoint, train_model
from gradveil.search.settings import SearchSettings
from gradveil.search.strategies import find_policies
from gradveil.search.validate import ValidatedPolicy, Validation, validate
from gradveil.study import OnProgress, silent
from gradveil.training import Checkpoint
from gradveil.workers import Crew, Workers

OnChange = Callable[[Records], None]
"""Called with all that is known so far: at the start and whenever there is progress."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found: the outcome, the policies that were validated, and the record as `search.json` holds it."""

    outcome: Outcome
    validated: tuple[ValidatedPolicy, ...]
    record: dict[str, Any]

    @property
    def policies(self) -> list[str]:
        """List the kept policies, the best first."""
        return [candidate.policy for candidate in self.outcome.kept]

    @property
    def hybrid(self) -> str:
        """Return the best policies without a transformation in common, joined."""
        return str(self.record["hybrid"])


def run_search(
    settings: SearchSettings,
    data: DataSet,
    folder: Path,
    *,
    workers: int | Crew = 1,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint: Path | Checkpoint | None = None,
    validation: Validation | None = None,
    progress: OnProgress = silent,
    on_change: OnChange | None = None,
) -> SearchResult:
    """Search for policies and write the journal, `policies.json` and `search.json` to a folder.

    Scores are computed on the weights of `checkpoint`, which then brings its own model and loss, or on a model that is
    trained as the settings say. A search that was stopped goes on with `resume` and the same settings.
    """
    prepared = None
    if checkpoint is not None:
        prepared = prepare_model(read_checkpoint(checkpoint, settings.model, data), settings.seed)
        settings = replace(
            settings,
            model=prepared.spec.name,
            training=None,
            weights=prepared.digest,
            loss=str(prepared.loss),
        )
    check_inputs(settings, data, prepared, validation)
    with (
        Workers(workers) if isinstance(workers, int) else nullcontext(workers) as crew,
        opened_folder(folder, settings, resume, overwrite) as (journal, records),
    ):
        report = Reporter(records, progress, on_change)
        if prepared is None:
            prepared = prepare_model(train_model(settings, data, folder / MODEL, report), settings.seed)
        scores = ScoreJournal(settings, journal, records, crew, make_inputs(settings, data, prepared), report)
        outcome = find_policies(scores)
        baseline = score_none(scores, outcome)
        validated = []
        if validation is not None:
            others = leave_out_scored(settings, data)
            validated = validate(scores, prepared.spec.name, outcome.kept, others, validation, report)
        return write_result(folder, scores, prepared, outcome, baseline, validated)


def check_inputs(
    settings: SearchSettings, data: DataSet, prepared: ScoringModel | None, validation: Validation | None
) -> None:
    """Refuse what cannot work before anything is written or trained."""
    if settings.training is None and prepared is None:
        raise SettingsError(f"the weights {settings.weights} are not there: give their checkpoint")
    if prepared is None:
        factory(settings.model)
    choose_images(settings, data)
    left = len(leave_out_scored(settings, data).test)
    if validation is not None and validation.best and validation.images > left:
        raise SettingsError(f"--validate-images {validation.images}: {left} test images are not scored; attack fewer")


class Reporter:
    """Report progress, and hand on all that is known so far."""

    def __init__(self, records: Records, progress: OnProgress, on_change: OnChange | None) -> None:
        self.records, self.progress, self.on_change = records, progress, on_change
        self.change()

    def __call__(self, what: str, done: int, total: int) -> None:
        self.progress(what, done, total)
        self.change()

    def change(self) -> None:
        if self.on_change is not None:
            self.on_change(self.records)


def write_result(
    folder: Path,
    scores: ScoreJournal,
    prepared: ScoringModel,
    outcome: Outcome,
    baseline: Baseline,
    validated: list[ValidatedPolicy],
) -> SearchResult:
    """Write the policies and, last, the record."""
    figures = make_figures(scores, outcome, baseline, validated)
    result = record("search", scores.settings.to_record(), {**figures, "weights": prepared.digest})
    write_file(folder / POLICIES, to_json(seal(json.loads(json.dumps(make_policies(figures))))))
    write_file(folder / RESULT, to_json(result))
    return SearchResult(outcome, tuple(validated), result)
