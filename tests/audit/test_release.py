"""What clients of an audit release: the gradient that is trained with, on one device, from private images."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import pytest
import torch
from torch import nn

from gradveil import data
from gradveil.attacks import Attack, Progress
from gradveil.audit import Audit, AuditSettings
from gradveil.audit.jobs import attack_rounds
from gradveil.audit.release import Scene, Share
from gradveil.audit.run import AuditRun
from gradveil.client import Client
from gradveil.data import DataSet
from gradveil.defences import Arm, parse_arm
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import BRIEF, FAST, PAPER, TrainingSettings, train
from gradveil.types import Batch, LocalTraining, Reconstruction, Task, Update
from gradveil.workers import Workers


@cache
def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(200)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:20]))


def make_scene(arm: Arm, model: str = "lenet-relu", local: LocalTraining | None = None) -> Scene:
    sample = small_data()
    spec = ModelSpec(model, sample.shape, sample.classes, sample.mean, sample.std)
    weights = spec.build(generator(0, "model")).state_dict()
    return Scene(spec, weights, arm, "init", local or LocalTraining(), None, True, True, 0)


def share(*places: int) -> Share:
    test = small_data().test
    return Share(places, Batch(test.images[list(places)], test.labels[list(places)]))


@pytest.mark.parametrize("recipe", [PAPER, FAST, BRIEF], ids=lambda recipe: recipe.recipe)
@pytest.mark.parametrize("model", ["lenet-relu", "convnet-2"])
def test_the_audited_gradient_is_the_trained_one(recipe: TrainingSettings, model: str) -> None:
    """The papers' code halved the loss in training and not in the attack; ours once smoothed labels in training only.

    One step of training with plain SGD moves the weights by the gradient that the audit of that phase releases.
    """
    sample = small_data()
    one = replace(sample, train=sample.train.take(torch.arange(8)))
    rate = 2.0**-6
    settings = replace(
        recipe, epochs=1, batch_size=8, learning_rate=rate, momentum=0.0, weight_decay=0.0, muon=0.0, threads=1
    )
    settings = replace(settings, warm_up=0.0, schedule="steps")
    spec = ModelSpec(model, sample.shape, sample.classes, sample.mean, sample.std)
    network = spec.build(generator(0, "model")).double()
    snapshots = train(network, one, settings, seed=0, phases=("init", "final")).snapshots
    audited = AuditSettings(training=recipe, images=8, images_per_client=8, local=LocalTraining(mode="train"))
    order = torch.randperm(8, generator=generator(0, "training", "shuffle", 0))
    batch = Batch(one.train.images[order], one.train.labels[order])
    client = Client(copy.deepcopy(network), audited.local)
    released = client.update(snapshots["init"], batch, (), generator(0)).tensors
    for name, gradient in released.items():
        moved = (snapshots["init"][name] - snapshots["final"][name]) / rate
        assert float((moved - gradient).norm()) <= 1e-6 * max(1.0, float(gradient.norm())), name


@dataclass(frozen=True)
class Eavesdropper(Attack):
    """Rebuild nothing, but keep what came in."""

    heard: list[tuple[Task, Update]] = field(default_factory=list)

    @property
    def needs(self) -> tuple[str, ...]:
        return ("nothing",)

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> list[Reconstruction]:
        self.heard.extend((task, update) for update in updates)
        return [
            Reconstruction(torch.zeros(update.images, *task.shape), torch.zeros(update.images, dtype=torch.int64), 0.0)
            for update in updates
        ]


def eavesdrop(arm: str, device: str = "cpu", **changes: object) -> list[tuple[Task, Update]]:
    """Take the steps of an audit up to the attack."""
    settings = replace(AuditSettings(phases=("init",), images=4, floor_images=100), **changes)  # type: ignore[arg-type]
    spy = Eavesdropper()
    audit = Audit(settings, data=small_data(), arms=[arm], attacks=[spy])
    with Workers(1) as workers:
        run = AuditRun(audit, workers, device, lambda *_: None)
        job = run.cell_job((audit.arms[0], "init", spy.name), run.rounds, {})
        rounds = [job.scene.capture(shares, device).round for shares in job.clients]
        attack_rounds(rounds, spy, spy.name, public=job.public, seed=0, device=device, report=lambda *_: None)
    return spy.heard


@pytest.mark.parametrize(
    "text", ["gaussian:0.1", "laplacian:0.1", "prune:90", "topk:5", "clip:0.01", "sign", "quantise:2"]
)
def test_the_attack_receives_what_is_released(text: str) -> None:
    """The papers' code noised and pruned in training, but attacked the clean gradient."""
    (task, heard), *_ = eavesdrop(f"{text},no-base", knows_defence=False)
    (_, clean), *_ = eavesdrop("none")
    assert any(not torch.allclose(tensor, clean.tensors[name]) for name, tensor in heard.tensors.items())
    scene = replace(make_scene(parse_arm(f"{text},no-base")), local=heard.local)
    first = Audit(AuditSettings(phases=("init",), images=4), data=small_data()).places[0]
    released = scene.capture([share(first)], "cpu").round.update
    for name, tensor in heard.tensors.items():
        assert torch.equal(tensor, released.tensors[name])
    assert task.known_defences == ()


@pytest.mark.parametrize(
    ("arm", "changes"),
    [
        ("none", {}),
        ("policy:3-1-7,gaussian:0.1", {"knows_defence": True}),
        ("mixup", {}),
        ("none", {"images_per_client": 2, "participants": 2, "local": LocalTraining(steps=2, batch_size=1)}),
        ("none", {"model": "convnet-2", "images_per_client": 4, "local": LocalTraining(mode="train")}),
    ],
)
def test_everything_the_attacker_gets_is_on_its_device(arm: str, changes: dict[str, object]) -> None:
    """The meta device stands for a GPU: what was left behind on the processor is seen, or raises."""
    heard = eavesdrop(arm, "meta", **changes)
    assert heard
    for task, update in heard:
        assert task.public is not None
        assert update.labels is not None
        tensors = [
            *task.model.state_dict().values(),
            *update.tensors.values(),
            *(update.buffers or {}).values(),
            update.labels,
            task.public.images,
            task.public.labels,
        ]
        assert {tensor.device.type for tensor in tensors} == {"meta"}


@pytest.mark.parametrize("arm", ["mixup", "instahide"])
def test_no_partner_of_a_mixture_is_among_the_public_images(arm: str) -> None:
    audit = Audit(AuditSettings(phases=("init",), images=4, floor_images=100), data=small_data(), arms=[arm])
    assert audit.others is not None
    public = {image.numpy().tobytes() for image in audit.public.images}
    assert not public & {image.numpy().tobytes() for image in audit.others.images}
    assert len(audit.others) >= 15


def test_the_truth_is_what_was_fed_first() -> None:
    local = LocalTraining(epochs=2, batch_size=1)
    captured = make_scene(parse_arm("policy:3-1-7"), local=local).capture([share(3, 5)], "cpu")
    assert [truth.image for truth in captured.truths] == [3, 5]
    assert all(not torch.equal(truth.original, truth.transformed) for truth in captured.truths)
    plain = make_scene(parse_arm("none"), local=local).capture([share(3, 5)], "cpu")
    assert all(torch.equal(truth.original, truth.transformed) for truth in plain.truths)


def test_the_attacker_is_told_of_defences_only_if_asked() -> None:
    arm = parse_arm("gaussian:0.1")
    told, not_told = (replace(make_scene(arm), told=told).capture([share(0)], "cpu").round for told in (True, False))
    assert told.known_defences == arm.defences
    assert not_told.known_defences == ()


class Viewing(nn.Module):
    """The original DLG LeNet flattens with `view`, which channels-last memory refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(1, 4, 5, stride=3)
        self.head = nn.Linear(4 * 8 * 8, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = self.body(images).sigmoid()
        logits: torch.Tensor = self.head(hidden.view(len(hidden), -1))
        return logits


def test_a_model_that_views_is_trained_and_attacked() -> None:
    settings = AuditSettings(
        phases=("init", "final"), images=2, steps=2, floor_images=50, training=replace(BRIEF, epochs=1)
    )
    report = Audit(settings, data=small_data(), model=Viewing(), arms=["none"]).run()
    assert {row.status for row in report.rows} == {"ok"}
