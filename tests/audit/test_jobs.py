"""The jobs of an audit: four steps, in any process."""

import pickle
from dataclasses import replace

import torch

from gradveil import data
from gradveil.attacks import find_attack
from gradveil.audit.jobs import CellJob, TrainJob
from gradveil.audit.release import Scene, Share
from gradveil.data import DataSet
from gradveil.defences import parse_arm
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import BRIEF
from gradveil.types import Batch, LocalTraining


def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(60)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:20]))


def spec() -> ModelSpec:
    sample = small_data()
    return ModelSpec("mlp", sample.shape, sample.classes, sample.mean, sample.std)


def make_job(attack: str, keep_history: bool = False) -> CellJob:
    sample = small_data()
    weights = spec().build(generator(0, "model")).state_dict()
    scene = Scene(spec(), weights, parse_arm("none"), "init", LocalTraining(), None, True, False, 0)
    shares = [(Share((place,), Batch(sample.test.images[[place]], sample.test.labels[[place]])),) for place in (4, 9)]
    public = Batch(sample.train.images, sample.train.labels)
    return CellJob(scene, tuple(shares), find_attack(attack), attack, public, "cpu", keep_history)


def test_every_image_comes_back_with_its_truth() -> None:
    attacked = make_job("analytic").run(lambda *_: None)
    assert [one.truth.image for one in attacked] == [4, 9]
    for one in attacked:
        assert float((one.reconstruction.images - one.truth.transformed).abs().max()) < 1e-3
        assert one.seconds >= 0
        assert one.notices == ()


def test_a_job_travels_and_gives_the_same_elsewhere() -> None:
    job = make_job("analytic")
    here, there = (one.run(lambda *_: None) for one in (job, pickle.loads(pickle.dumps(job))))
    for ours, theirs in zip(here, there, strict=True):
        assert torch.equal(ours.reconstruction.images, theirs.reconstruction.images)


def test_an_attack_that_cannot_be_used_is_refused_with_its_reason() -> None:
    (first, _) = make_job("bn-prior").run(lambda *_: None)
    assert first.reconstruction.status == "refused"
    assert "batch normalisation" in first.reconstruction.reason


def test_the_way_is_kept_only_if_asked() -> None:
    kept, dropped = (make_job("fast", keep).run(lambda *_: None)[0].reconstruction for keep in (True, False))
    assert kept.history
    assert kept.pictures
    assert not dropped.history
    assert not dropped.pictures


def test_the_pictures_are_kept_without_the_rest_if_asked() -> None:
    found = replace(make_job("fast"), keep_pictures=True).run(lambda *_: None)[0].reconstruction
    assert found.pictures
    assert not found.history
    assert not found.similarities


def test_another_attempt_draws_anew() -> None:
    job = replace(make_job("fast"), attack=find_attack("fast").with_steps(2))
    first, again = (replace(job, attempt=number).run(lambda *_: None)[0] for number in (0, 1))
    assert torch.equal(first.truth.transformed, again.truth.transformed)
    assert not torch.equal(first.reconstruction.images, again.reconstruction.images)


def test_training_jobs_start_from_the_same_weights_and_report() -> None:
    settings = replace(BRIEF, epochs=1, batch_size=20)
    seen: list[tuple[int, int]] = []
    jobs = [
        TrainJob(spec(), small_data(), settings, parse_arm(arm), ("init", "final"), 0, "cpu")
        for arm in ("none", "gaussian:1")
    ]
    first, second = (job.run(lambda done, total: seen.append((done, total))) for job in jobs)
    assert all(torch.equal(tensor, second.snapshots["init"][name]) for name, tensor in first.snapshots["init"].items())
    assert not torch.equal(first.snapshots["final"]["head.weight"], second.snapshots["final"]["head.weight"])
    assert seen == [(1, 3), (2, 3), (3, 3)] * 2
