"""Every attack of the registry through the same contract, with a handful of steps."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil import data
from gradveil.attacks import ATTACKS, Attack, Ensemble, GradientMatching, find_attack
from gradveil.client import local_update
from gradveil.errors import KnowledgeError, UnknownNameError
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import Batch, LocalSteps, Reconstruction, Task, Update

SIDE = 12
CLASSES = 10
POLICY = ("policy:3-1-7",)


def shorten(attack: Attack) -> Attack:
    """Keep an attack as it is but for the number of steps and restarts."""
    if isinstance(attack, Ensemble):
        return Ensemble({name: shorten(member) for name, member in attack.members.items()})
    if isinstance(attack, GradientMatching):
        lasting = 2 if attack.optimiser == "lbfgs" else 6
        return replace(attack, steps=lasting, restarts=min(attack.restarts, 2))
    return attack


def pictures(channels: int, count: int = 16) -> Batch:
    """Cut real images to a small size; colour is three different ones on top of each other."""
    split = data.load("fashion-mnist-sample").test
    middle = split.images[: count * channels, :, 8 : 8 + SIDE, 8 : 8 + SIDE]
    return Batch(middle.reshape(count, channels, SIDE, SIDE), split.labels[:count])


def make_task(model_name: str, channels: int, known: Sequence[str] = POLICY) -> Task:
    shape = (channels, SIDE, SIDE)
    mean, std = (0.3,) * channels, (0.35,) * channels
    model = build(model_name, shape, CLASSES, mean, std, generator(0, "model"))
    model.train()(pictures(channels).pixels())  # batch normalisation sees one batch
    return Task(model.eval(), F.cross_entropy, shape, CLASSES, mean, std, tuple(known), pictures(channels))


def task_for(name: str, channels: int) -> Task:
    known = ("gaussian:0.001",) if name == "noise-aware" else POLICY
    return make_task({"analytic": "mlp", "bn-prior": "convnet-2"}.get(name, "lenet-relu"), channels, known)


def release(task: Task, image: int = 0, count: int = 1, local: LocalSteps | None = None) -> Update:
    batch = pictures(task.shape[0])
    part = Batch(batch.images[image : image + count], batch.labels[image : image + count])
    return local_update(task.model, task.loss, part, local)


def run(name: str, task: Task, updates: Sequence[Update]) -> list[Reconstruction]:
    sources = [generator(7, "attack", place) for place in range(len(updates))]
    return shorten(ATTACKS[name]).attack_many(task, updates, sources)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", ATTACKS)
def test_gives_images_of_the_right_kind(name: str, channels: int) -> None:
    task = task_for(name, channels)
    (found,) = run(name, task, [release(task)])
    assert found.status == "ok"
    assert found.images.shape == (1, *task.shape)
    assert found.images.dtype == torch.float32
    assert float(found.images.min()) >= 0
    assert float(found.images.max()) <= 1
    assert found.labels.shape == (1,)
    assert found.history[-1][1] == pytest.approx(found.matching_loss) or name == "standard"
    assert not found.images.requires_grad


@pytest.mark.parametrize("name", ATTACKS)
def test_a_seed_decides_everything(name: str) -> None:
    task = task_for(name, 1)
    first, second = (run(name, task, [release(task)])[0] for _ in range(2))
    torch.testing.assert_close(first.images, second.images, rtol=0, atol=0)
    assert first.matching_loss == second.matching_loss
    assert first.history == second.history


@pytest.mark.parametrize("name", ATTACKS)
def test_leaves_model_and_update_alone(name: str) -> None:
    task = task_for(name, 1)
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
    task = task_for(name, 1)
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
    task = task_for(name, 1)
    seen: list[tuple[int, int]] = []
    attack = shorten(ATTACKS[name])
    attack.attack_many(task, [release(task)], [generator(0)], lambda done, total: seen.append((done, total)))
    assert attack.needs
    assert all(isinstance(need, str) and need for need in attack.needs)
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "analytic"])
def test_takes_batches_and_weight_changes(name: str) -> None:
    task = task_for(name, 1)
    local = LocalSteps(steps=2, learning_rate=0.1, batch_size=2)
    (found,) = run(name, task, [release(task, count=3, local=local)])
    assert found.images.shape == (3, *task.shape)
    assert found.labels.shape == (3,)
    assert found.status == "ok"


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
        ("class-mean", "lenet-relu", {"public": None}, None),
        ("public-image", "lenet-relu", {"public": None}, None),
        ("policy-aware", "lenet-relu", {"known_defences": ()}, None),
        ("noise-aware", "lenet-relu", {"known_defences": ()}, None),
        ("noise-aware", "lenet-relu", {"known_defences": ("gaussian:0.1", "sign")}, None),
        ("bn-prior", "lenet-relu", {}, None),
        ("analytic", "lenet-relu", {}, None),
        ("analytic", "mlp", {}, LocalSteps(2, 0.1, 1)),
    ],
)
def test_refuses_what_lacks_its_needs(
    name: str, model: str, change: dict[str, object], local: LocalSteps | None
) -> None:
    task = replace(make_task(model, 1), **change)  # type: ignore[arg-type]
    with pytest.raises(KnowledgeError):
        ATTACKS[name](task, release(task, local=local), generator(0))


def test_refuses_untouched_statistics() -> None:
    fresh = build("convnet-2", (1, SIDE, SIDE), CLASSES, (0.3,), (0.3,), generator(0)).eval()
    task = replace(make_task("convnet-2", 1), model=fresh)
    with pytest.raises(KnowledgeError, match="made with"):
        ATTACKS["bn-prior"](task, release(task), generator(0))


def test_refuses_labels_that_cannot_be_read() -> None:
    task = replace(make_task("lenet-relu", 1), model=NoHead())
    hidden = replace(release(task), labels=None)
    with pytest.raises(KnowledgeError, match="one entry per class"):
        ATTACKS["fast"](task, hidden, generator(0))


def test_refuses_mixed_or_missing_updates() -> None:
    task = task_for("fast", 1)
    attack = ATTACKS["fast"]
    with pytest.raises(KnowledgeError, match="at least one"):
        attack.attack_many(task, [], [])
    with pytest.raises(KnowledgeError, match="different numbers"):
        attack.attack_many(task, [release(task), release(task, count=2)], [generator(0), generator(1)])


def test_a_loss_that_is_not_finite_is_a_failure_and_says_so() -> None:
    task = task_for("fast", 1)
    broken = replace(
        release(task), tensors={name: tensor * torch.nan for name, tensor in release(task).tensors.items()}
    )
    assert run("adam-cosine", task, [broken])[0].status == "failed"
    assert run("dlg", task, [broken])[0].status == "failed"


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="adam-cosine"):
        find_attack("adam-cosin")
