"""A search on a real small model: strategies agree, nothing is computed twice, bits do not depend on where."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gradveil import data
from gradveil.data import DataSet
from gradveil.errors import InputError, OutputError, SettingsError
from gradveil.journal import Journal
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.scores import PrivacyScore, choose_privacy_images
from gradveil.search import Outcome, SearchSettings, Study, search
from gradveil.search.records import FILE, differences, read_records
from gradveil.search.report import make_figures, make_policies
from gradveil.search.run import Prepared, make_material, unscored
from gradveil.search.status import make_status
from gradveil.search.study import only_writer, open_records
from gradveil.transforms import from_record, parse_policy
from gradveil.workers import Workers

SMALL = SearchSettings(
    model="lenet",
    candidates=20,
    keep=4,
    images=16,
    accuracy_threshold="-18",
    quadrature="trapezoid-5",
    training=None,
    weights="drawn",
)


@pytest.fixture(scope="module")
def sample() -> DataSet:
    loaded = data.load("fashion-mnist-sample")
    return replace(loaded, test=loaded.test.take(torch.arange(60)))


@pytest.fixture(scope="module")
def prepared(sample: DataSet) -> Prepared:
    spec = ModelSpec("lenet", sample.shape, sample.classes, sample.mean, sample.std)
    return Prepared(spec, spec.build(generator(1, "model")), spec.build(generator(0, "model")), "drawn", {})


class Runner:
    """Run searches in a folder of their own."""

    def __init__(self, sample: DataSet, prepared: Prepared) -> None:
        self.sample, self.prepared = sample, prepared
        self.study: Study | None = None

    def __call__(
        self, folder: Path, settings: SearchSettings, *, resume: bool = False, workers: int = 1, stop: int | None = None
    ) -> Outcome:
        folder.mkdir(exist_ok=True)
        journal, records = open_records(folder, settings, resume)
        left = stop

        def progress(what: str, done: int, total: int) -> None:  # noqa: ARG001
            nonlocal left
            if left is not None:
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt

        with Workers(workers) as crew:
            material = make_material(settings, self.sample, self.prepared)
            self.study = Study(settings, journal, records, crew, material, progress)
            return search(self.study)


@pytest.fixture(scope="module")
def run(sample: DataSet, prepared: Prepared) -> Runner:
    return Runner(sample, prepared)


@pytest.fixture(scope="module")
def whole(run: Runner, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """Race once without a stop."""
    folder = tmp_path_factory.mktemp("whole") / "search"
    return folder, run(folder, SMALL)


@pytest.fixture(scope="module")
def everything(run: Runner, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """Score everyone in full."""
    folder = tmp_path_factory.mktemp("everything") / "search"
    return folder, run(folder, replace(SMALL, strategy="random"))


def lines(folder: Path) -> list[dict[str, Any]]:
    return Journal(folder / FILE).read()


def test_racing_keeps_what_scoring_everyone_keeps(
    whole: tuple[Path, Outcome], everything: tuple[Path, Outcome]
) -> None:
    raced, scored = whole[1].kept, everything[1].kept
    assert [trial.policy for trial in raced] == [trial.policy for trial in scored]
    assert [trial.privacy for trial in raced] == [trial.privacy for trial in scored]
    assert whole[1].count("rejected") > 5
    assert everything[1].count("rejected") == 0
    assert sum(trial.exact for trial in whole[1].trials) < 0.6 * sum(trial.exact for trial in everything[1].trials)


def test_scores_are_those_of_the_score_itself(
    everything: tuple[Path, Outcome], sample: DataSet, prepared: Prepared
) -> None:
    places = choose_privacy_images(len(sample.test), 16)
    score = PrivacyScore(
        prepared.model, sample.test.images[places], sample.test.labels[places], quadrature="trapezoid-5", seed=0
    )
    best = everything[1].kept[0]
    assert score.score(parse_policy(best.policy)).tolist() == list(best.privacy)


@pytest.mark.parametrize("stop", [1, 6])
def test_a_search_that_was_stopped_takes_the_same_way(
    run: Runner, whole: tuple[Path, Outcome], tmp_path: Path, stop: int
) -> None:
    folder = tmp_path / "search"
    with pytest.raises(KeyboardInterrupt):
        run(folder, SMALL, stop=stop)
    before = len(lines(folder))
    assert before < len(lines(whole[0]))
    with (folder / FILE).open("ab") as stream:
        stream.write(b'{"privacy": "lobat')  # torn by the kill
    assert run(folder, SMALL, resume=True) == whole[1]
    expected, found = ([{**line, "seconds": 0} for line in lines(place)[1:]] for place in (whole[0], folder))
    assert len(found) == len(expected)
    assert all(line in expected for line in found)
    # Nothing is left to do the second time.
    again = len(lines(folder))
    assert run(folder, SMALL, resume=True) == whole[1]
    assert len(lines(folder)) == again


def test_bits_do_not_depend_on_the_number_of_workers(run: Runner, whole: tuple[Path, Outcome], tmp_path: Path) -> None:
    assert run(tmp_path / "search", SMALL, workers=2) == whole[1]


def test_other_settings_are_refused_with_the_difference(run: Runner, whole: tuple[Path, Outcome]) -> None:
    before = lines(whole[0])
    with pytest.raises(SettingsError, match=r"keep was 4 and is 5; seed was 0 and is 1"):
        run(whole[0], replace(SMALL, keep=5, seed=1), resume=True)
    with pytest.raises(OutputError, match="--resume"):
        run(whole[0], SMALL)
    assert lines(whole[0]) == before


def test_nothing_to_resume_is_said(run: Runner, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="without --resume"):
        run(tmp_path / "new", SMALL, resume=True)
    with pytest.raises(OutputError, match="holds no search"):
        read_records(tmp_path)


def test_a_second_driver_is_kept_out(tmp_path: Path) -> None:
    with only_writer(tmp_path), pytest.raises(OutputError, match="another search"), only_writer(tmp_path):
        pass
    with only_writer(tmp_path):
        pass


def test_a_threshold_out_of_reach_ends_with_the_distribution(run: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "search"
    settings = replace(SMALL, accuracy_threshold="-1.0001", candidates=6, keep=2)
    with pytest.raises(SettingsError, match=r"0 of \d+ different candidates.*median -.*--accuracy-threshold") as caught:
        run(folder, settings)
    assert "\n" not in str(caught.value)
    assert len(read_records(folder).accuracy) >= 6


def test_drawing_goes_on_while_too_few_qualify(run: Runner, tmp_path: Path) -> None:
    settings = replace(SMALL, candidates=4, keep=4, accuracy_threshold="50%", accuracy_sample=4)
    for strategy in ("racing", "random"):
        outcome = run(tmp_path / strategy, replace(settings, strategy=strategy))
        assert len(outcome.kept) == 4
        assert len(outcome.trials) > 4
        assert run.study is not None
        assert run.study.drawn > 4
        events = [line for line in lines(tmp_path / strategy) if line.get("event") == "too few"]
        assert events[0]["qualified"] == 2


def test_evolution_meets_more_of_the_best(run: Runner, everything: tuple[Path, Outcome], tmp_path: Path) -> None:
    outcome = run(tmp_path / "one", replace(SMALL, strategy="evolve", candidates=30, keep=3))
    assert len(outcome.trials) == 30
    assert len(outcome.kept) == 3
    assert sum(t.mean for t in outcome.kept) < sum(t.mean for t in everything[1].kept[:3])
    first = lines(tmp_path / "one")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "two", replace(SMALL, strategy="evolve", candidates=30, keep=3), stop=7)
    again = run(tmp_path / "two", replace(SMALL, strategy="evolve", candidates=30, keep=3), resume=True)
    assert again == outcome
    assert len(lines(tmp_path / "two")) == len(first)


def test_the_figures_and_the_policies(run: Runner, whole: tuple[Path, Outcome]) -> None:
    run(whole[0], SMALL, resume=True)
    assert run.study is not None
    figures = make_figures(run.study, whole[1], [])
    assert [entry["policy"] for entry in figures["policies"]] == [trial.policy for trial in whole[1].kept]
    assert all(entry["images"] == 16 and entry["exact"] for entry in figures["policies"])
    assert figures["counts"]["drawn"] == 20
    assert (
        sum(figures["counts"][status] for status in ("kept", "beaten", "rejected", "unfit", "failed"))
        == (figures["counts"]["different"])
    )
    best = min(figures["front"], key=lambda entry: entry["privacy"])
    assert best["privacy"] <= figures["policies"][0]["privacy"]
    policies = json.loads(json.dumps(make_policies(figures)))
    assert str(from_record(policies["hybrid"])) == figures["hybrid"]
    assert [str(from_record(entry)) for entry in policies["policies"]] == [trial.policy for trial in whole[1].kept]


def test_the_status_tells_how_far_it_is(run: Runner, whole: tuple[Path, Outcome], tmp_path: Path) -> None:
    done = make_status(read_records(whole[0]))
    assert done.finished
    assert [one.privacy for one in done.leaders] == [trial.mean for trial in whole[1].kept]
    assert all(one.exact for one in done.leaders)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "search", SMALL, stop=4)
    early = make_status(read_records(tmp_path / "search"))
    assert not early.finished
    assert "at work" in early.headline
    assert len(early.leaders) == 4
    assert not any(one.exact for one in early.leaders)


def test_what_was_scored_is_not_attacked() -> None:
    sample = data.load("fashion-mnist-sample")
    left = unscored(SMALL, sample)
    # 100 images for S_acc; those for S_pri are among them up to place 275.
    assert len(left.test) == 1000 - 100
    scored = sample.test.images[choose_privacy_images(1000, 16)].flatten(1)
    rest = left.test.images.flatten(1)
    assert not any((rest == image).all(1).any() for image in scored[:4])


def test_settings_survive_json_and_refuse_nonsense() -> None:
    for settings in (SMALL, SearchSettings()):
        record = json.loads(json.dumps(settings.to_record()))
        assert SearchSettings.from_record(record) == replace(settings, quadrature=settings.rule)
    with pytest.raises(SettingsError, match="keep 11 of 10"):
        SearchSettings(candidates=10, keep=11)
    with pytest.raises(SettingsError, match="there are 50 policies"):
        SearchSettings(length=1)
    for name, value in {
        "candidates": 0, "images": 0, "length": 4, "error": 0.0, "accuracy_sample": 1, "strategy": "magic",
        "score": "beauty", "select": "luck", "quadrature": "simpson-3", "accuracy_threshold": "high", "seed": -1,
        "weights": "both",
    }.items():  # fmt: skip
        with pytest.raises(InputError):
            SearchSettings(**{name: value})  # type: ignore[arg-type]


def test_differences_name_both_values() -> None:
    assert differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}, "d": 4}) == [
        "b.c was 2 and is 3",
        "d was None and is 4",
    ]


def test_a_score_that_is_not_finite_is_no_privacy(sample: DataSet, prepared: Prepared, tmp_path: Path) -> None:
    broken = prepared.spec.build(generator(1, "model"))
    with torch.no_grad():
        next(broken.parameters()).fill_(torch.nan)
    other = Runner(sample, replace(prepared, model=broken))
    with pytest.raises(SettingsError, match="finite"):
        other(tmp_path / "search", replace(SMALL, candidates=4, keep=2))


def test_a_brief_attack_can_be_searched_by(run: Runner, tmp_path: Path) -> None:
    settings = replace(SMALL, score="brief-attack", candidates=3, keep=1, images=4, accuracy_threshold="none")
    outcome = run(tmp_path / "brief", replace(settings, quadrature=None))
    score = make_material(settings, run.sample, run.prepared).privacy(settings.rule)
    means = [float(score.score(parse_policy(trial.key), range(4)).mean()) for trial in outcome.trials]
    assert [trial.mean for trial in outcome.kept] == [min(means)]
