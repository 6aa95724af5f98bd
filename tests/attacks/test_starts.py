"""Where a search begins."""

from dataclasses import replace

import pytest
import torch

from gradveil.attacks import BestGuess, ClassMean, Noise, PublicImage, Start, Tiles
from gradveil.attacks.starts import FAINT, normalise
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.rng import generator
from gradveil.types import Batch
from tests.attacks.scenes import make_task

TASK = make_task()
LABELS = torch.tensor([0, 1])


def test_noise_has_its_deviation() -> None:
    labels = torch.zeros(200, dtype=torch.int64)
    assert float(Noise(0.3).draw(TASK, labels, generator(0)).std()) == pytest.approx(0.3, rel=0.02)
    with pytest.raises(SettingsError, match="0 or more"):
        Noise(-1.0)


def test_tiles_repeat_and_are_cut_at_the_border() -> None:
    drawn = Tiles(5).draw(TASK, LABELS, generator(0))
    assert drawn.shape == (2, *TASK.shape)
    assert torch.equal(drawn[..., :5, :5], drawn[..., 5:10, 5:10])
    assert torch.equal(drawn[..., :2, :], drawn[..., 10:12, :])
    assert not torch.equal(drawn[0], drawn[1])
    with pytest.raises(SettingsError, match="1 or more"):
        Tiles(0)


def test_starts_with_public_images_are_near_those_of_the_class() -> None:
    public = Batch(torch.tensor([0.0, 1.0, 0.5]).view(3, 1, 1, 1).expand(3, *TASK.shape), torch.tensor([0, 0, 1]))
    task = replace(TASK, public=public)
    pixels = normalise(task)
    mean = ClassMean().draw(task, LABELS, generator(0))
    torch.testing.assert_close(
        mean.mean((1, 2, 3)), pixels[[0, 2]].mean((1, 2, 3)) + torch.tensor([0.5 / 0.35, 0]), atol=0.05, rtol=0
    )
    chosen = PublicImage().draw(task, LABELS, generator(0))
    assert any(torch.equal(chosen[0], pixels[place]) for place in (0, 1))
    assert torch.equal(chosen[1], pixels[2])
    assert torch.equal(BestGuess().draw(task, LABELS, generator(0)), mean)


def test_a_class_without_public_images_takes_all_of_them() -> None:
    public = Batch(torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, *TASK.shape), torch.tensor([0, 1]))
    task = replace(TASK, public=public)
    start = ClassMean().draw(task, torch.tensor([7]), generator(0))
    assert float(start.mean()) == pytest.approx(float(normalise(task).mean()), abs=0.05)


@pytest.mark.parametrize("public", [None, Batch(torch.zeros(0, *TASK.shape), torch.zeros(0, dtype=torch.int64))])
def test_what_needs_public_images_says_so(public: Batch | None) -> None:
    task = replace(TASK, public=public)
    knowing: tuple[Start, ...] = (ClassMean(), PublicImage())
    for start in knowing:
        assert start.needs is not None
        with pytest.raises(KnowledgeError, match="public images"):
            start.check(task)
    knowing_nothing: tuple[Start, ...] = (Noise(), BestGuess())
    for start in knowing_nothing:
        assert start.needs is None
        start.check(task)
    faint = BestGuess().draw(task, LABELS, generator(0))
    assert torch.equal(faint, Noise(FAINT).draw(task, LABELS, generator(0)))


@pytest.mark.parametrize("start", [Noise(), BestGuess()])
def test_starts_are_drawn_on_the_generator_and_moved_to_the_labels(start: Start) -> None:
    task = replace(TASK, public=None)
    assert start.draw(task, LABELS.to("meta"), generator(0)).is_meta
