"""Every kind of defence in a real, if tiny, audit; the attack receives what is released and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import ClassVar

import pytest
import torch

from gradveil import data
from gradveil.attacks import Attack
from gradveil.attacks.base import Progress
from gradveil.audit import AuditReport, AuditSettings, run_audit
from gradveil.audit.cells import AttackJob, build_defended
from gradveil.client import local_update
from gradveil.data import DataSet
from gradveil.defences import defend_release, expand_arms, parse_arm
from gradveil.models import ModelSpec
from gradveil.rng import generator, split
from gradveil.training import BRIEF
from gradveil.types import Batch, Reconstruction, Task, Update

ARMS = (
    "none",
    "gaussian:1e-3",
    "prune:70,policy:3-1-7,no-base",
    "mixup",
    "instahide",
    "dpsgd:noise=1:clip=1",
    "soteria:40",
    "precode:width=8",
)
SMALL = AuditSettings(
    model="lenet",
    arms=ARMS,
    images=2,
    steps=2,
    floor_images=100,
    training=replace(BRIEF, epochs=1, batch_size=50),
)


@cache
def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(100)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:20]))


@cache
def report() -> AuditReport:
    return run_audit(SMALL, small_data())


def test_every_arm_is_attacked_in_every_phase() -> None:
    assert len(report().rows) == 2 * 2 * len(ARMS)
    assert {row.status for row in report().rows} == {"ok"}


def test_the_report_says_what_each_arm_does() -> None:
    arms = report().to_figures()["arms"]
    assert arms["none"]["defences"] == ()
    assert arms["gaussian:1e-3"]["defences"] == ("crop-flip", "gaussian:0.001")
    assert arms["prune:70,policy:3-1-7,no-base"]["defences"] == ("prune:70", "policy:3-1-7")
    assert arms["precode:width=8"]["edits"] == ("Linear → Sequential(Bottleneck, Linear): head",)
    assert arms["gaussian:1e-3"]["edits"] == ()


def test_the_report_has_the_guarantees_of_dpsgd() -> None:
    notes = report().arms["dpsgd:noise=1:clip=1"]
    assert notes.training is not None
    assert (notes.training.rate, notes.training.steps) == (0.5, 2)
    assert notes.released is not None
    assert (notes.released.rate, notes.released.steps) == (1, 1)
    assert notes.bound == pytest.approx(0.0924, abs=1e-3)
    assert report().arms["gaussian:1e-3"].training is None


def test_a_mixed_image_is_not_the_original() -> None:
    for row, picture in zip(report().rows, report().pictures, strict=True):
        if row.arm in ("mixup", "instahide"):
            assert not torch.equal(picture.original, picture.transformed)


def test_the_attacker_of_an_aggregate_sees_one_update_of_all() -> None:
    settings = replace(SMALL, arms=("none", "gaussian:1e-3"), phases=("init",), participants=2)
    rows = run_audit(settings, small_data()).rows
    assert [row.status for row in rows] == ["ok"] * 4
    assert rows[0].matching_loss == rows[1].matching_loss


def test_ten_random_policies_are_averaged() -> None:
    arms = expand_arms(["random-policy,no-base"])
    assert len(arms) == 10
    found = run_audit(replace(SMALL, arms=arms[:3], phases=("init",)), small_data())
    means = [summary.advantage.mean for summary in found.summaries if summary.advantage]
    assert found.pooled[0].policies == 3
    assert found.pooled[0].advantage.mean == pytest.approx(sum(means) / 3)


@dataclass(frozen=True)
class Eavesdropper(Attack):
    """Rebuild nothing, but keep what came in."""

    heard: list[Update] = field(default_factory=list)
    needs: ClassVar[tuple[str, ...]] = ()

    def check(self, task: Task, updates: Sequence[Update]) -> None: ...

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> list[Reconstruction]:
        self.heard.extend(updates)
        return [Reconstruction(torch.zeros(1, *task.shape), torch.zeros(1, dtype=torch.int64), 0.0) for _ in updates]


@pytest.mark.parametrize(
    "text", ["gaussian:0.1", "laplacian:0.1", "prune:90", "topk:5", "clip:0.01", "sign", "quantise:2"]
)
def test_the_attack_receives_what_is_released(text: str) -> None:
    """The papers' code noised and pruned in training, but attacked the clean gradient."""
    sample, arm = small_data(), parse_arm(f"{text},no-base")
    spec = ModelSpec("lenet", sample.shape, sample.classes, sample.mean, sample.std)
    model = build_defended(spec, arm, 0).eval()
    fed = Batch(sample.test.images[:1], sample.test.labels[:1])
    spy = Eavesdropper()
    AttackJob(spec, model.state_dict(), (fed,), (7,), arm, "init", spy, "spy", True, 0, "cpu").run(lambda *_: None)
    clean = local_update(model, torch.nn.functional.cross_entropy, fed)
    source = split(generator(0, "release", arm.name, "init", 7), 2)[1]
    released = defend_release(arm.defences, clean, source)
    for name, tensor in spy.heard[0].tensors.items():
        torch.testing.assert_close(tensor, released.tensors[name])
    assert any(not torch.allclose(tensor, clean.tensors[name]) for name, tensor in spy.heard[0].tensors.items())
