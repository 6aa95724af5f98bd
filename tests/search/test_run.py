"""A search in one call: its files, its result, going on after a stop, and bits that do not depend on where."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil.data import DataSet
from gradveil.errors import OutputError, SettingsError
from gradveil.results import provenance
from gradveil.rng import generator
from gradveil.search import Records, SearchResult, Validation, run_search
from gradveil.training import BRIEF, Checkpoint
from gradveil.workers import Workers
from tests.search.runs import SMALL, Runner, drawn_checkpoint, read_lines


def test_everything_is_written_and_returned(whole: tuple[Path, SearchResult]) -> None:
    folder, result = whole
    assert {path.name for path in folder.iterdir()} == {"journal.jsonl", "policies.json", "search.json"}
    assert json.loads((folder / "search.json").read_text()) == result.record
    assert result.policies == [candidate.policy for candidate in result.outcome.kept]
    assert len(result.policies) == SMALL.keep
    assert result.hybrid == result.record["hybrid"]
    assert result.validated == ()
    assert result.record["settings"]["loss"] == "cross-entropy"


def test_a_model_is_trained_if_none_is_given(sample: DataSet, tmp_path: Path) -> None:
    training = replace(BRIEF, epochs=1, fraction=0.02)
    settings = replace(SMALL, candidates=3, keep=1, images=4, accuracy_threshold="none", training=training)
    seen: list[int] = []

    def on_change(records: Records) -> None:
        seen.append(records.jobs)

    result = run_search(settings, sample, tmp_path / "run", on_change=on_change)
    assert (tmp_path / "run" / "model" / "final.safetensors").exists()
    assert result.record["settings"]["loss"] == training.loss == "cross-entropy:smoothing=0.1"
    assert seen[0] == 0
    assert seen[-1] > 0


def test_the_loss_of_the_checkpoint_counts(sample: DataSet, whole: tuple[Path, SearchResult], tmp_path: Path) -> None:
    smoothed = drawn_checkpoint(sample, {"settings": BRIEF.to_record()})
    result = Runner(sample, smoothed)(tmp_path / "run", SMALL)
    assert result.record["settings"]["loss"] == "cross-entropy:smoothing=0.1"
    assert result.record["weights"] == whole[1].record["weights"]
    plain = {candidate.key: candidate.mean for candidate in whole[1].outcome.candidates}
    assert any(candidate.mean != plain[candidate.key] for candidate in result.outcome.kept)


@pytest.mark.parametrize("stop", [1, 6])
def test_a_search_that_was_stopped_takes_the_same_way(
    run: Runner, whole: tuple[Path, SearchResult], tmp_path: Path, stop: int
) -> None:
    folder = tmp_path / "search"
    with pytest.raises(KeyboardInterrupt):
        run(folder, SMALL, stop=stop)
    before = len(read_lines(folder))
    assert before < len(read_lines(whole[0]))
    with (folder / "journal.jsonl").open("ab") as stream:
        stream.write(b'{"privacy": "lobat')  # torn by the kill
    assert run(folder, SMALL, resume=True).outcome == whole[1].outcome
    expected, found = ([{**line, "seconds": 0} for line in read_lines(place)[1:]] for place in (whole[0], folder))
    assert len(found) == len(expected)
    assert all(line in expected for line in found)
    # Nothing is left to do the second time.
    again = len(read_lines(folder))
    assert run(folder, SMALL, resume=True).outcome == whole[1].outcome
    assert len(read_lines(folder)) == again


def test_bits_do_not_depend_on_the_number_of_workers(
    run: Runner, whole: tuple[Path, SearchResult], tmp_path: Path
) -> None:
    assert run(tmp_path / "search", SMALL, workers=2).outcome == whole[1].outcome


def test_a_crew_is_used_and_left_open(sample: DataSet, checkpoint: Checkpoint, tmp_path: Path) -> None:
    settings = replace(SMALL, candidates=4, keep=1, images=4)
    with Workers(1) as crew:
        results = [
            run_search(settings, sample, tmp_path / name, workers=crew, checkpoint=checkpoint) for name in ("a", "b")
        ]
    assert results[0].outcome == results[1].outcome


def test_a_finished_search_is_replaced_only_if_asked(
    run: Runner, sample: DataSet, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    settings = replace(SMALL, candidates=4, keep=1, images=4)
    first = run(tmp_path / "run", settings)
    with pytest.raises(OutputError, match="--overwrite"):
        run(tmp_path / "run", settings)
    other = replace(settings, seed=1)
    second = run_search(other, sample, tmp_path / "run", overwrite=True, checkpoint=checkpoint)
    assert second.outcome != first.outcome
    assert read_lines(tmp_path / "run")[0]["study"]["seed"] == 1


def test_what_cannot_work_leaves_nothing_behind(sample: DataSet, checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="attack fewer"):
        run_search(SMALL, sample, tmp_path / "run", checkpoint=checkpoint, validation=Validation(1, images=50))
    with pytest.raises(SettingsError, match="give their checkpoint"):
        run_search(replace(SMALL, training=None, weights="drawn"), sample, tmp_path / "run")
    with pytest.raises(SettingsError, match="1 or more"):
        run_search(SMALL, sample, tmp_path / "run", workers=0, checkpoint=checkpoint)
    assert not (tmp_path / "run").exists()


def test_a_score_that_is_not_finite_is_no_privacy(sample: DataSet, checkpoint: Checkpoint, tmp_path: Path) -> None:
    broken = checkpoint.spec.build(generator(1, "model"))
    with torch.no_grad():
        next(broken.parameters()).fill_(torch.nan)
    run = Runner(sample, replace(checkpoint, weights=broken.state_dict()))
    with pytest.raises(SettingsError, match="finite"):
        run(tmp_path / "search", replace(SMALL, candidates=4, keep=2))


def test_every_line_says_which_version_commit_and_machine_made_it(whole: tuple[Path, SearchResult]) -> None:
    header, *lines = read_lines(whole[0])
    assert provenance().items() <= header["environment"].items()
    assert len(lines) > 5
    assert all(line["provenance"] == provenance() for line in lines)
