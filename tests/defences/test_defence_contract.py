"""One contract for every defence, from one table."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from gradveil import data
from gradveil.client import Client
from gradveil.data import DataSet
from gradveil.defences import (
    DEFENCES,
    HOOKS,
    NOTHING_YET,
    Defence,
    defend_batch,
    defend_model,
    parse_arm,
    parse_defence,
)
from gradveil.gradients import Tensors, gradient
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import FAST, TrainingResult, train
from gradveil.types import Batch, Update


@dataclass(frozen=True)
class Case:
    """A defence at a common strength; `identity` is the strength that changes nothing, where there is one."""

    text: str
    identity: str | None = None


CASES = {
    "crop-flip": Case("crop-flip"),
    "policy": Case("policy:3-1-7+43-18-18", "policy:none"),
    "random-policy": Case("random-policy:4"),
    "gaussian": Case("gaussian:0.01", "gaussian:0"),
    "laplacian": Case("laplacian:0.01", "laplacian:0"),
    "prune": Case("prune:70", "prune:0"),
    "topk": Case("topk:10", "topk:100"),
    "clip": Case("clip:0.01", "clip:1e9"),
    "sign": Case("sign"),
    "quantise": Case("quantise:3"),
    "mixup": Case("mixup"),
    "instahide": Case("instahide"),
    "dpsgd": Case("dpsgd:noise=0.5:clip=1", "dpsgd:noise=0:clip=1e9"),
    "soteria": Case("soteria:40:probes=4", "soteria:0"),
    "precode": Case("precode:width=8"),
    "censor": Case("censor:trials=3"),
    "oasis": Case("oasis:major+shear"),
    "percentile": Case("percentile", "percentile:percent=0:gamma=1e9"),
}
TELLING = ("known_policies", "known_release", "known_views", "known_model", "deviation")
IDENTITIES = [case.identity for case in CASES.values() if case.identity]


@cache
def tiny_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(48)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:24]))


def batch(count: int = 4) -> Batch:
    images = tiny_data().train
    return Batch(images.images[:count], images.labels[:count])


def build(*defences: Defence, name: str = "lenet") -> nn.Module:
    sample = tiny_data()
    spec = ModelSpec(name, sample.shape, sample.classes, sample.mean, sample.std)
    return defend_model(defences, spec.build(generator(0, "model")), generator(0, "defences")).eval()


def release(*defences: Defence, seed: int = 0, count: int = 4, model: nn.Module | None = None) -> Update:
    """Let a client release the update of its batch, as the audit does."""
    model = model or build(*defences)
    return Client(model).update(model.state_dict(), batch(count), defences, generator(seed, "round"))


def plain_gradient(model: nn.Module) -> Tensors:
    return gradient(model, CrossEntropy(), batch().pixels(), batch().labels)


def equal(ours: Update, theirs: Update) -> bool:
    return all(torch.equal(ours.tensors[name], theirs.tensors[name]) for name in ours.tensors)


def flat(update: Update) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in update.tensors.values()])


def test_the_table_is_complete() -> None:
    assert set(CASES) == set(DEFENCES)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_declares_its_hooks_and_what_an_attacker_can_use(case: Case) -> None:
    defence = parse_defence(case.text)
    assert defence.hooks
    assert set(defence.hooks) <= set(HOOKS)
    assert defence.used != NOTHING_YET
    kind = type(defence)
    tells = not kind.smooth or any(getattr(kind, name) is not getattr(Defence, name) for name in TELLING)
    # Who tells nothing gives the reason.
    assert tells != defence.used.startswith("nothing, because ")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_documentation_says_what_an_attacker_uses(case: Case) -> None:
    page = (Path(__file__).parents[2] / "docs" / "defences.md").read_text()
    assert f"| {parse_defence(case.text).used} |" in page


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_names_and_shapes_are_kept(case: Case) -> None:
    defence = parse_defence(case.text)
    model = build(defence)
    found = release(defence, model=model)
    assert {name: tensor.shape for name, tensor in found.tensors.items()} == {
        name: parameter.shape for name, parameter in model.named_parameters()
    }
    assert found.images == 4
    assert all(torch.isfinite(tensor).all() for tensor in found.tensors.values())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_images_stay_images(case: Case) -> None:
    fed = defend_batch([parse_defence(case.text)], batch(), generator(0))
    assert fed.images.shape == batch().images.shape
    assert fed.pixels().min() >= 0
    assert fed.pixels().max() <= 1
    assert set(fed.labels.tolist()) <= set(batch().labels.tolist())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_seed_decides(case: Case) -> None:
    defence = parse_defence(case.text)
    state = torch.random.get_rng_state()
    assert equal(release(defence, seed=3), release(defence, seed=3))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_something_is_done(case: Case) -> None:
    defence = parse_defence(case.text)
    model = build(defence)
    released = release(defence, model=model).tensors
    plain = plain_gradient(model)
    assert any(not torch.allclose(released[name], plain[name], rtol=1e-3, atol=1e-6) for name in plain)


@pytest.mark.parametrize("text", IDENTITIES)
def test_zero_strength_changes_nothing(text: str) -> None:
    defence = parse_defence(text)
    model = build(defence)
    released, plain = release(defence, model=model).tensors, plain_gradient(model)
    for name, tensor in plain.items():
        torch.testing.assert_close(released[name], tensor, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_defences_are_read_back_from_what_they_print(case: Case) -> None:
    defence = parse_defence(case.text)
    assert parse_defence(str(defence)) == defence


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_model_given_is_left_as_it_is(case: Case) -> None:
    model = build()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    parse_defence(case.text).model(model, generator(0))
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_composes_with_others(case: Case) -> None:
    defences = parse_arm(f"{case.text},policy:3-1-7,prune:50,gaussian:1e-4").defences
    released = flat(release(*defences))
    assert torch.isfinite(released).all()
    assert not torch.equal(released, flat(release(parse_defence(case.text))))


def train_briefly(text: str, model: str = "lenet") -> TrainingResult:
    defences = parse_arm(f"{text},no-base").defences
    settings = replace(FAST, epochs=1, batch_size=16, learning_rate=0.01, threads=1)
    return train(build(*defences, name=model), tiny_data(), settings, defences=defences, seed=0)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_works_in_training(case: Case) -> None:
    once, again = train_briefly(case.text), train_briefly(case.text)
    first, last = once.snapshots["init"], once.snapshots["final"]
    assert all(torch.isfinite(tensor).all() for tensor in last.values())
    assert any(not torch.equal(tensor, first[name]) for name, tensor in last.items())
    assert all(torch.equal(tensor, again.snapshots["final"][name]) for name, tensor in last.items())


@pytest.mark.parametrize(
    "text",
    [
        "soteria:40:probes=1",
        "dpsgd:noise=0.5:clip=1",
        "precode:width=8,soteria:9:probes=1",
        "censor:trials=2,oasis:hflip",
    ],
)
def test_those_that_know_the_model_train_one_with_batch_normalisation(text: str) -> None:
    once = train_briefly(text, "resnet20-1")
    assert all(torch.isfinite(tensor).all() for tensor in once.snapshots["final"].values())


@pytest.mark.parametrize(
    "text",
    [
        "gaussian:0.5",
        "laplacian:0.5",
        "prune:99",
        "topk:1",
        "sign",
        "clip:1e-6",
        "dpsgd:noise=9:clip=1",
        "soteria:95:probes=1",
        "censor:trials=2",
        "oasis",
        "percentile:percent=90",
    ],
)
def test_training_uses_what_is_released(text: str) -> None:
    ours, plain = (train_briefly(arm).snapshots["final"]["head.weight"] for arm in (text, "gaussian:0"))
    assert not torch.allclose(ours, plain, atol=1e-4)
