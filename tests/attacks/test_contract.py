"""Every attack of the registry through the same contract, with a handful of steps."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from gradveil.attacks import ATTACKS
from gradveil.defences import parse_defences
from gradveil.errors import KnowledgeError
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import ONE_GRADIENT, LocalTraining, Reconstruction, Task, Update
from tests.attacks.scenes import CLASSES, POLICY, SIDE, make_task, release, shorten

DIRECT = ("analytic", "spear", "cocktail-party")
"""Attacks that read an update of one step off."""


def task_for(name: str, channels: int = 1) -> Task:
    known = ("gaussian:0.001",) if name == "noise-aware" else POLICY
    return make_task(
        {"analytic": "mlp", "spear": "mlp", "bn-prior": "convnet-2"}.get(name, "lenet-relu"), channels, known
    )


def run(name: str, task: Task, updates: Sequence[Update]) -> list[Reconstruction]:
    sources = [generator(7, "attack", place) for place in range(len(updates))]
    return shorten(ATTACKS[name]).attack_many(task, updates, sources)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", ATTACKS)
def test_gives_images_of_the_right_kind(name: str, channels: int) -> None:
    task = task_for(name, channels)
    (result,) = run(name, task, [release(task)])
    assert result.status == "ok"
    assert result.reason == ""
    assert result.approximations == ()
    assert result.images.shape == (1, *task.shape)
    assert result.images.dtype == torch.float32
    assert float(result.images.min()) >= 0
    assert float(result.images.max()) <= 1
    assert result.labels.shape == (1,)
    assert result.history[-1][1] == pytest.approx(result.matching_loss) or name in ("standard", "standard-6")
    assert not result.images.requires_grad


@pytest.mark.parametrize("name", ATTACKS)
def test_a_seed_decides_everything(name: str) -> None:
    task = task_for(name)
    first, second = (run(name, task, [release(task)])[0] for _ in range(2))
    torch.testing.assert_close(first.images, second.images, rtol=0, atol=0)
    assert first.matching_loss == second.matching_loss
    assert first.history == second.history


@pytest.mark.parametrize("name", ATTACKS)
def test_leaves_model_and_update_alone(name: str) -> None:
    task = task_for(name)
    update = release(task)
    before = {key: tensor.clone() for key, tensor in (*task.model.state_dict().items(), *update.tensors.items())}
    state = torch.random.get_rng_state()
    run(name, task, [update])
    after: dict[str, Tensor] = {**task.model.state_dict(), **update.tensors}
    assert all(torch.equal(after[key], tensor) for key, tensor in before.items() if key in update.tensors)
    assert all(
        torch.equal(task.model.state_dict()[key], before[key])
        for key in task.model.state_dict()
        if key not in update.tensors
    )
    assert all(parameter.grad is None for parameter in task.model.parameters())
    assert not task.model.training
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("name", ATTACKS)
def test_neighbours_do_not_matter(name: str) -> None:
    task = task_for(name)
    updates = [release(task, image) for image in range(3)]
    together = run(name, task, updates)
    attack = shorten(ATTACKS[name])
    alone = [attack(task, update, generator(7, "attack", place)) for place, update in enumerate(updates)]
    for one, other in zip(together, alone, strict=True):
        # Signs of slopes near zero may flip with the last bit of a sum, so almost all pixels have to agree, not all.
        same = (one.images - other.images).abs() < 0.02
        assert float(same.float().mean()) > 0.9


@pytest.mark.parametrize("name", ATTACKS)
def test_says_what_it_needs_and_reports_progress(name: str) -> None:
    task = task_for(name)
    seen: list[tuple[int, int]] = []
    attack = shorten(ATTACKS[name])
    attack.attack_many(task, [release(task)], [generator(0)], lambda done, total: seen.append((done, total)))
    assert attack.needs
    assert all(isinstance(need, str) and need for need in attack.needs)
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in DIRECT])
def test_takes_batches_and_weight_changes(name: str) -> None:
    task = task_for(name)
    local = LocalTraining(steps=2, learning_rate=0.1, batch_size=2)
    (result,) = run(name, task, [release(task, count=3, local=local)])
    assert result.images.shape == (3, *task.shape)
    assert result.labels.shape == (3,)
    assert result.status == "ok"


@pytest.mark.parametrize("name", ["fast", "bn-prior", "standard"])
def test_takes_a_batch_in_training_mode(name: str) -> None:
    task = make_task("convnet-2")
    update = release(task, count=4, local=LocalTraining(mode="train"))
    assert update.buffers is not None
    (result,) = run(name, task, [update])
    assert result.status == "ok"
    assert result.images.shape == (4, *task.shape)


@pytest.mark.parametrize("name", ["fast", "analytic", "standard"])
def test_says_what_the_simulation_leaves_out(name: str) -> None:
    plain = make_task("mlp" if name == "analytic" else "lenet-relu")
    task = replace(plain, model=nn.Sequential(plain.model, nn.Dropout(0.5)).eval())
    assert run(name, task, [release(task)])[0].approximations == ()
    (result,) = run(name, task, [release(task, local=LocalTraining(mode="train"))])
    assert len(result.approximations) == 1
    assert "dropout" in result.approximations[0]


class NoHead(nn.Module):
    """A network none of whose parameters has one entry per class."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)[:, :CLASSES] * self.scale.sum()


@pytest.mark.parametrize(
    ("name", "model", "change", "local"),
    [
        ("class-mean", "lenet-relu", {"public": None}, ONE_GRADIENT),
        ("public-image", "lenet-relu", {"public": None}, ONE_GRADIENT),
        ("policy-aware", "lenet-relu", {"known_defences": ()}, ONE_GRADIENT),
        ("noise-aware", "lenet-relu", {"known_defences": ()}, ONE_GRADIENT),
        ("noise-aware", "lenet-relu", {"known_defences": parse_defences(["gaussian:0.1", "sign"])}, ONE_GRADIENT),
        ("bn-prior", "lenet-relu", {}, ONE_GRADIENT),
        ("analytic", "lenet-relu", {}, ONE_GRADIENT),
        ("spear", "lenet-relu", {}, ONE_GRADIENT),
        ("spear", "mlp", {}, LocalTraining(steps=2, batch_size=1)),
        ("cocktail-party", "lenet-relu", {}, LocalTraining(steps=2, batch_size=1)),
        ("learned", "lenet-relu", {"public": None}, ONE_GRADIENT),
        ("learned", "lenet-relu", {"participants": 2}, ONE_GRADIENT),
        ("analytic", "mlp", {}, LocalTraining(steps=2, batch_size=1)),
    ],
)
def test_refuses_what_lacks_its_needs(name: str, model: str, change: dict[str, object], local: LocalTraining) -> None:
    task = replace(make_task(model, known=POLICY), **change)  # type: ignore[arg-type]
    with pytest.raises(KnowledgeError):
        ATTACKS[name](task, release(task, local=local), generator(0))


def test_refuses_untouched_statistics() -> None:
    fresh = build("convnet-2", (1, SIDE, SIDE), CLASSES, (0.3,), (0.3,), generator(0)).eval()
    task = replace(make_task("convnet-2"), model=fresh)
    with pytest.raises(KnowledgeError, match="made with"):
        ATTACKS["bn-prior"](task, release(task), generator(0))


def test_refuses_labels_that_cannot_be_read() -> None:
    task = replace(make_task(), model=NoHead())
    hidden = replace(release(task), labels=None)
    with pytest.raises(KnowledgeError, match="one entry per class"):
        ATTACKS["fast"](task, hidden, generator(0))


def test_refuses_mixed_or_missing_updates() -> None:
    task = task_for("fast")
    attack = ATTACKS["fast"]
    with pytest.raises(KnowledgeError, match="at least one"):
        attack.attack_many(task, [], [])
    with pytest.raises(KnowledgeError, match="different numbers"):
        attack.attack_many(task, [release(task), release(task, count=2)], [generator(0), generator(1)])


def test_a_loss_that_is_not_finite_is_a_failure_and_says_so() -> None:
    task = task_for("fast")
    broken = replace(
        release(task), tensors={name: tensor * torch.nan for name, tensor in release(task).tensors.items()}
    )
    for name, reason in {
        "adam-cosine": "the matching loss was not finite at step 0",
        "dlg": "the matching loss was not finite at step 0",
        "lbfgs-l2": "each of 2 restarts failed; the first one: the matching loss was not finite at step 0",
        "strong": "every member failed: levelled: each of 2 restarts failed",
    }.items():
        (result,) = run(name, task, [broken])
        assert result.status == "failed"
        assert result.reason.startswith(reason)


def test_layers_that_draw_draw_from_the_generator_of_the_attack() -> None:
    plain = make_task(known=("precode:width=4",))
    (precode,) = plain.known_defences
    task = replace(plain, model=precode.model(plain.model, generator(1)).eval())
    update = release(task)
    first = run("fast", task, [update])[0]
    torch.rand(3)  # moves the global state, which must not matter
    assert torch.equal(run("fast", task, [update])[0].images, first.images)
