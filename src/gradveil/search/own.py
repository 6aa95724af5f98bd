"""The search for policies on a person's own model and data, in one call."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from gradveil.data import DataSet, find_data
from gradveil.errors import SettingsError
from gradveil.models import ModelSpec
from gradveil.scores import count_scorable
from gradveil.search.run import SearchResult, run_search
from gradveil.search.settings import BRIEFLY_TRAINED, SAMPLE, SEMI_TRAINED, SearchSettings
from gradveil.search.validate import Validation
from gradveil.study import OnProgress, silent
from gradveil.training import Checkpoint, TrainingSettings, train_enough
from gradveil.workers import Crew


def search_policies(
    model: nn.Module | str,
    data: Any,
    *,
    candidates: int = 200,
    keep: int = 10,
    images: int | None = None,
    test: Any = None,
    validate: int = 0,
    folder: str | Path | None = None,
    workers: int | Crew = 1,
    progress: OnProgress = silent,
    seed: int = 0,
) -> SearchResult:
    """Search for the policies that score best, beside no policy at all.

    A module is scored with its weights as they are, S_acc too; the model of a name is trained first, semi-trained as in
    Gao et al. `data` and `test` are as in `gradveil.audit`. `images` test images are scored, 100 or as many as there
    are. The best `validate` are really attacked and trained with, which needs a model by name. Journal and results
    stay in `folder` if one is given. `run_search` and `SearchSettings` have all the rest.
    """
    loaded = find_data(data, test)
    least = min(100, count_scorable(len(loaded.test)))
    checkpoint = wrap(model, loaded) if isinstance(model, nn.Module) else None
    if checkpoint is not None and validate:
        raise SettingsError(f"validate={validate} trains anew: give the model by name, as package.module:factory")
    settings = SearchSettings(
        data=loaded.name,
        model="lenet-relu" if isinstance(model, nn.Module) else model,
        candidates=candidates,
        keep=keep,
        images=least if images is None else images,
        training=choose_training(loaded.name, len(loaded.train)),
        seed=seed,
    )
    with given_or_temporary(folder) as place:
        return run_search(
            settings,
            loaded,
            place,
            workers=workers,
            checkpoint=checkpoint,
            validation=Validation(validate) if validate else None,
            progress=progress,
        )


def wrap(model: nn.Module, data: DataSet) -> Checkpoint:
    """Take a module's weights as those of a checkpoint."""
    spec = ModelSpec.of(model, data.shape, data.classes, data.mean, data.std)
    assert spec.module is not None
    return Checkpoint(dict(spec.module.state_dict()), spec, {})


def choose_training(data: str, images: int) -> TrainingSettings:
    """Choose the papers' training of a semi-trained model, with enough of a small data set, or a brief training."""
    return BRIEFLY_TRAINED if data == SAMPLE else train_enough(SEMI_TRAINED, images)


@contextmanager
def given_or_temporary(folder: str | Path | None) -> Iterator[Path]:
    """Use the folder that is given, or one that is removed at the end."""
    if folder is not None:
        yield Path(folder)
        return
    with TemporaryDirectory(prefix="gradveil-search-") as place:
        yield Path(place) / "search"
