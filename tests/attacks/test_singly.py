"""What attacks share that read updates off directly."""

from dataclasses import replace

import pytest
import torch

from gradveil.attacks import ATTACKS
from gradveil.attacks.ranking import Comparison
from gradveil.attacks.singly import as_one_gradient, attack_singly, conclude, require_tensors
from gradveil.errors import KnowledgeError
from gradveil.metrics import assign, psnr
from gradveil.rng import generator
from gradveil.types import LocalTraining, Reconstruction, Update
from tests.attacks.scenes import make_task, pictures, release, sample_task, take, update_of

STEP = LocalTraining(steps=1, batch_size=2, learning_rate=0.05)


def test_the_change_of_one_plain_step_is_the_gradient() -> None:
    task = make_task("mlp")
    gradient, change = (release(task, count=2, local=local) for local in (LocalTraining(), STEP))
    turned = as_one_gradient(change)
    assert not turned.local.takes_steps
    assert as_one_gradient(gradient) is gradient
    for name, tensor in gradient.tensors.items():
        torch.testing.assert_close(turned.tensors[name], tensor, rtol=1e-2, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [{"steps": 2}, {"momentum": 0.9}, {"weight_decay": 0.1}, {"batch_size": 1}, {"optimiser": "adam"}],
)
def test_other_changes_are_refused(change: dict[str, object]) -> None:
    update = replace(release(make_task("mlp"), count=2), local=replace(STEP, **change))  # type: ignore[arg-type]
    with pytest.raises(KnowledgeError, match="several local steps"):
        as_one_gradient(update)


@pytest.mark.parametrize("name", ["spear", "analytic"])
def test_images_are_read_off_the_change_of_one_step(name: str) -> None:
    task, batch = sample_task("mlp"), take(range(20, 24))
    local = LocalTraining(steps=1, batch_size=4, learning_rate=0.01)
    result = ATTACKS[name](task, update_of(task, batch, local), generator(0))
    order = assign(result.images, batch.pixels())
    assert float(psnr(result.images[order], batch.pixels()).max()) > 30


def test_missing_tensors_are_named() -> None:
    update = release(make_task("mlp"))
    require_tensors(update, ["head.weight"])
    with pytest.raises(KnowledgeError, match=r"lacks more.weight"):
        require_tensors(update, ["head.weight", "more.weight"])


def test_updates_are_attacked_in_turn_with_their_own_generators() -> None:
    task = make_task("mlp")
    updates = [release(task, image) for image in range(2)]
    seen: list[int] = []

    def recover(update: Update, source: torch.Generator) -> Reconstruction:
        colour = float(torch.rand(1, generator=source))
        return conclude(Comparison(task), update, torch.full((1, *task.shape), colour), torch.zeros(1).long())

    sources = [generator(3, place) for place in range(2)]
    results = attack_singly(updates, sources, recover, lambda done, _: seen.append(done))
    assert seen == [1, 2]
    assert not torch.equal(results[0].images, results[1].images)


def test_pixels_that_are_not_finite_are_a_failure() -> None:
    task = make_task("mlp")
    broken = pictures().pixels()[:1] * torch.nan
    result = conclude(Comparison(task), release(task), broken, torch.zeros(1).long())
    assert result.status == "failed"
    assert "not finite" in result.reason
