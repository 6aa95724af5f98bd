"""Batches behind convolutions."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from gradveil.attacks import ATTACKS, CocktailParty
from gradveil.attacks.cocktail_party import APPROXIMATE, usable_layers
from gradveil.errors import KnowledgeError
from gradveil.metrics import assign, choose_floor, make_guesses, psnr
from gradveil.rng import generator
from gradveil.types import Batch, LocalTraining, Task
from tests.attacks.scenes import CLASSES, plain_task, recipe, sample, sample_task, take, update_of
from tests.attacks.test_separation import small_batch, wide_model

PARTY = CocktailParty().with_steps(100)


class WideNet(nn.Module):
    """Convolutions, a wide linear layer with ReLU, and one to the classes, as AlexNet ends."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 16, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.wide = nn.Linear(16 * 49, 256)
        self.head = nn.Linear(256, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(torch.relu(self.wide(self.features(images - 0.3))))
        return logits


def wide_task() -> Task:
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    model = WideNet().eval()
    torch.random.set_rng_state(state)
    return replace(sample_task(), model=model)


def paired_floor(batch: Batch) -> torch.Tensor:
    """Score the best guess without a gradient for each class, paired as freely as what is rebuilt."""
    train = sample().train.take(torch.arange(1000))
    pixels = Batch(train.images, train.labels).pixels()
    guesses = make_guesses([(pixels, train.labels)], 10, labels_known=True)
    images = choose_floor(guesses, pixels[:256], train.labels[:256], psnr).images[batch.labels]
    return psnr(images[assign(images, batch.pixels())], batch.pixels())


@pytest.mark.slow
def test_eight_images_behind_convolutions_are_rebuilt_better_than_by_matching_gradients() -> None:
    task, batch = wide_task(), take(range(40, 48))
    update = update_of(task, batch)
    scores = []
    for attack in (ATTACKS["cocktail-party"], recipe("fast").with_steps(480)):
        result = attack(task, update, generator(0))
        scores.append(psnr(result.images[assign(result.images, batch.pixels())], batch.pixels()))
    assert float(scores[0].mean()) > 20
    assert float((scores[0] - paired_floor(batch)).min()) > 1
    assert float((scores[0] - scores[1]).mean()) > 1


def test_the_update_of_another_batch_gives_nothing_of_this_one() -> None:
    task, batch, other = sample_task(), take(range(40, 44)), take(range(50, 54))
    right, wrong = (PARTY(task, update_of(task, one), generator(0)).images for one in (batch, other))
    right, wrong = (images[assign(images, batch.pixels())] for images in (right, wrong))
    floor = paired_floor(batch)
    assert float((psnr(right, batch.pixels()) - floor).mean()) > 3
    assert float((psnr(wrong, batch.pixels()) - floor).mean()) < 0


def test_labels_are_found_and_go_with_their_images() -> None:
    task, batch = sample_task(), take(range(40, 46))
    result = PARTY(task, update_of(task, batch, share_labels=False), generator(0))
    order = assign(result.images, batch.pixels())
    assert torch.equal(result.labels[order], batch.labels)
    assert result.approximations == ()


def test_more_images_than_the_last_layer_shows_are_a_failure_with_a_reason() -> None:
    task = sample_task()
    result = PARTY(task, update_of(task, take(range(12))), generator(0))
    assert result.status == "failed"
    assert "9 at 'head'" in result.reason


def test_features_that_are_approximate_are_called_so() -> None:
    task, batch = plain_task(wide_model(nn.Tanh), CLASSES), small_batch(8)
    result = PARTY.with_steps(3)(task, update_of(task, batch), generator(0))
    assert result.status == "ok"
    assert result.approximations == (APPROXIMATE,)


def test_training_mode_and_one_step_are_attacked_as_they_are() -> None:
    task, batch = sample_task("convnet-2"), take(range(40, 43))
    for local in (LocalTraining(mode="train"), LocalTraining(steps=1, batch_size=3, learning_rate=0.05, mode="train")):
        result = PARTY.with_steps(3)(task, update_of(task, batch, local), generator(0))
        assert result.images.shape == batch.images.shape


def test_refuses_models_and_updates_without_a_linear_layer() -> None:
    task = sample_task()
    assert usable_layers(task) == ["head"]
    update = update_of(task, take([0]))
    lacking = replace(update, tensors={name: one for name, one in update.tensors.items() if "head" not in name})
    with pytest.raises(KnowledgeError, match="linear layer"):
        PARTY(task, lacking, generator(0))
    convolutional = nn.Sequential(nn.Conv2d(1, 10, 28), nn.Flatten()).eval()
    with pytest.raises(KnowledgeError, match="no linear layer"):
        usable_layers(replace(task, model=convolutional))
