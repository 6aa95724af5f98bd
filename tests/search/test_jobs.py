"""What the workers of a search compute, and which images they see."""

from dataclasses import replace

from gradveil import data
from gradveil.data import DataSet
from gradveil.scores import choose_privacy_images
from gradveil.search.jobs import AccuracyJob, PrivacyJob, leave_out_scored, make_inputs
from gradveil.search.scoring_model import prepare_model
from gradveil.training import Checkpoint
from gradveil.transforms import parse_policy
from gradveil.workers import Workers
from tests.search.runs import SMALL


def ignore(done: int, total: int) -> None:
    """Report to nobody."""


def test_jobs_return_the_fields_of_a_line(sample: DataSet, checkpoint: Checkpoint) -> None:
    inputs = make_inputs(SMALL, sample, prepare_model(checkpoint, 0))
    shared = Workers(1).share(inputs)
    line = PrivacyJob(shared, ("18", "none"), (0, 2), "lobatto-3").run(ignore)
    assert list(line["scores"]) == ["18", "none"]
    score = inputs.privacy_score("lobatto-3")
    assert line["scores"]["18"] == score.score(parse_policy("18"), [0, 2]).tolist()
    assert inputs.privacy_score("lobatto-3") is score
    line = AccuracyJob(shared, "18").run(ignore)
    assert line["accuracy"] == {"18": [inputs.accuracy_score.score(parse_policy("18"))]}
    assert line["seconds"] >= 0


def test_the_scored_images_and_the_loss_are_those_of_the_settings(sample: DataSet, checkpoint: Checkpoint) -> None:
    prepared = prepare_model(checkpoint, 0)
    inputs = make_inputs(replace(SMALL, images=5), sample, prepared)
    places = choose_privacy_images(sample, 5, 0)
    assert inputs.inputs.images.images.equal(sample.test.images[places])
    assert inputs.inputs.task.loss == prepared.loss
    assert (len(inputs.accuracy_images), inputs.accuracy_batches) == (48, 1)


def test_what_was_scored_is_not_attacked() -> None:
    sample = data.load("fashion-mnist-sample")
    left = leave_out_scored(SMALL, sample)
    # 100 images for S_acc, those for S_pri among them.
    assert len(left.test) == 1000 - 100
    scored = sample.test.images[choose_privacy_images(sample, 16, SMALL.seed)].flatten(1)
    rest = left.test.images.flatten(1)
    assert not any((rest == image).all(1).any() for image in scored)
