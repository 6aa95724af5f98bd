import torch

from gradveil import data
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import BRIEF, estimate_training

SAMPLE = data.load("fashion-mnist-sample")


def test_steps_are_counted_and_the_model_is_left_as_it_is() -> None:
    spec = ModelSpec("mlp", SAMPLE.shape, SAMPLE.classes, SAMPLE.mean, SAMPLE.std)
    model = spec.build(generator(0, "model"))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = estimate_training(model, SAMPLE, BRIEF, (), 0)
    assert found.counts == {"training steps": BRIEF.epochs * BRIEF.steps_per_epoch(len(SAMPLE.train))}
    assert found.seconds > 0
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
