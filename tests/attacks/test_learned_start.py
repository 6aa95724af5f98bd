"""The learnt picture as a start."""

from dataclasses import replace

import pytest
import torch

from gradveil.attacks import FAINT, Learned, LearnedStart
from gradveil.errors import KnowledgeError
from gradveil.rng import generator
from tests.attacks.scenes import make_task, recipe, release

SMALL = Learned(draws=1, epochs=0)


def test_begins_near_the_learnt_picture() -> None:
    task = make_task()
    update = release(task)
    picture = SMALL(task, update, generator(0)).images
    labels = torch.zeros(1, dtype=torch.int64)
    drawn = LearnedStart(SMALL).for_update(task, update).draw(task, labels, generator(0))
    pixels = drawn * task.std[0] + task.mean[0]
    assert float((pixels - picture).square().mean().sqrt()) < 2 * FAINT * task.std[0]


def test_gradient_matching_takes_it() -> None:
    task = make_task(known=("policy:3-1-7",))
    attack = replace(recipe("policy-aware").with_steps(3), start=LearnedStart(SMALL))
    result = attack(task, release(task), generator(0))
    assert result.status == "ok"
    assert "public images of the same kind" in attack.needs
    with pytest.raises(KnowledgeError, match="public images"):
        attack(replace(task, public=None), release(task), generator(0))
    assert attack.public_images == SMALL.public
    assert attack(task, release(task, count=2), generator(0)).images.shape == (2, *task.shape)
