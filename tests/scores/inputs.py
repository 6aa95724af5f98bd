"""Inputs of scores on a small model."""

from gradveil import data, models, rng
from gradveil.losses import CrossEntropy, Loss
from gradveil.scores import ScoreInputs
from gradveil.transforms import parse_policy
from gradveil.types import Batch, Task

NONE, SHIFTED = parse_policy("none"), parse_policy("3-1-7")
PLAIN, SMOOTHED = CrossEntropy(), CrossEntropy(0.1)


def make_inputs(loss: Loss = PLAIN, images: int = 6) -> ScoreInputs:
    """Take a model as it is drawn, a few test images, and public ones."""
    sample = data.load("fashion-mnist-sample")
    model = models.build("lenet", sample.shape, sample.classes, sample.mean, sample.std, rng.generator(0, "model"))
    task = Task(model.eval(), loss, sample.shape, sample.classes, sample.mean, sample.std)
    scored, train = slice(200, 200 + images), sample.train
    public = Batch(train.images[:400], train.labels[:400])
    return ScoreInputs(task, Batch(sample.test.images[scored], sample.test.labels[scored]), public)
