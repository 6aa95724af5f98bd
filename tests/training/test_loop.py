"""The training loop: what it computes, that its draws are named, that it goes on exactly where it was."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from gradveil import data, models, rng
from gradveil.data import DataSet, ImageSet
from gradveil.defences import Defence, Hook
from gradveil.defences.base import Compute
from gradveil.errors import CheckpointError, DivergenceError, SettingsError
from gradveil.gradients import Tensors
from gradveil.losses import Loss
from gradveil.machine import has_faulty_layer
from gradveil.training import FAST, PAPER, TrainingProgress, TrainingResult, accuracy, load_checkpoint, train
from gradveil.training.checkpoint import Weights
from gradveil.training.loop import take_fraction
from gradveil.types import Batch, Update

QUICK = replace(PAPER, epochs=2, batch_size=32, threads=1)


@pytest.fixture(scope="module")
def small() -> DataSet:
    """160 training and 100 test images of the sample."""
    sample = data.load("fashion-mnist-sample")
    first = torch.arange(160)
    return replace(sample, train=sample.train.take(first), test=sample.test.take(first[:100]))


def make(sample: DataSet, name: str = "lenet-relu", seed: int = 0) -> nn.Module:
    return spec(sample, name).build(rng.generator(seed, "model"))


def spec(sample: DataSet, name: str = "lenet-relu") -> models.ModelSpec:
    return models.ModelSpec(name, sample.shape, sample.classes, sample.mean, sample.std)


def same(first: Weights, second: Weights) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@dataclass(frozen=True)
class Shift(Defence):
    """Shift each image by a random number of columns: an augmentation that draws."""

    most: int = 3

    hooks: ClassVar[tuple[Hook, ...]] = ("batch",)

    def __str__(self) -> str:
        return f"shift:{self.most}"

    def batch(self, batch: Batch, generator: torch.Generator) -> Batch:
        shift = int(torch.randint(self.most, (), generator=generator))
        return Batch(batch.images.roll(shift, 3), batch.labels)


@dataclass(frozen=True)
class Noise(Defence):
    """Add noise to what is released."""

    scale: float

    hooks: ClassVar[tuple[Hook, ...]] = ("release",)

    def __str__(self) -> str:
        return f"noise:{self.scale}"

    def release(self, update: Update, generator: torch.Generator) -> Update:
        noisy = {
            name: tensor + self.scale * torch.randn(tensor.shape, generator=generator)
            for name, tensor in update.tensors.items()
        }
        return replace(update, tensors=noisy)


def test_a_step_is_the_plain_step_of_nesterov_sgd(small: DataSet) -> None:
    settings = replace(QUICK, epochs=1, batch_size=160, loss="cross-entropy:smoothing=0.1")
    model, plain = make(small), make(small)
    optimiser = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    order = torch.randperm(160, generator=rng.generator(0, "training", "shuffle", 0))
    logits = plain(small.train.images[order].float() / 255)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)(logits, small.train.labels[order])
    loss.backward()
    optimiser.step()
    result = train(model, small, settings, seed=0, phases=("final",))
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(result.snapshots["final"][name], tensor)
    assert result.curves[0].train_loss == pytest.approx(loss.item())
    assert result.curves[0].train_accuracy == int((logits.argmax(1) == small.train.labels[order]).sum()) / 160


def test_snapshots_are_what_the_model_was_and_do_not_depend_on_which_were_asked_for(small: DataSet) -> None:
    model = make(small)
    untouched = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    many = train(model, small, QUICK, seed=1, phases=("final", "epoch-1", "step-5", "step-3", "init"))
    assert list(many.snapshots) == ["final", "epoch-1", "step-5", "step-3", "init"]
    assert same(many.snapshots["init"], untouched)
    assert same(many.snapshots["final"], dict(model.state_dict()))
    assert same(many.snapshots["epoch-1"], many.snapshots["step-5"])
    assert not same(many.snapshots["step-3"], many.snapshots["step-5"])
    few = train(make(small), small, QUICK, seed=1, phases=("step-3",))
    assert same(few.snapshots["step-3"], many.snapshots["step-3"])
    assert few.test_accuracy == many.test_accuracy == accuracy(model, small.test)


def test_the_seed_decides_everything_and_global_state_nothing(small: DataSet) -> None:
    def run(seed: int) -> Weights:
        return train(make(small), small, QUICK, seed=seed, defences=(Shift(), Noise(1e-3))).snapshots["final"]

    torch.manual_seed(1)
    first = run(3)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert same(first, run(3))
    assert not same(first, run(4))
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_draws_from_the_seed_too(small: DataSet) -> None:
    def run(seed: int) -> Weights:
        torch.manual_seed(seed)
        model = nn.Sequential(make(small), nn.Dropout(0.5))
        return train(model, small, QUICK, seed=0).snapshots["final"]

    assert same(run(1), run(2))


def test_batch_and_release_hooks_act(small: DataSet) -> None:
    plain = train(make(small), small, QUICK, seed=0).snapshots["final"]
    assert not same(plain, train(make(small), small, QUICK, seed=0, defences=(Shift(),)).snapshots["final"])
    assert not same(plain, train(make(small), small, QUICK, seed=0, defences=(Noise(1e-3),)).snapshots["final"])
    # A release hook that changes nothing changes nothing.
    assert same(plain, train(make(small), small, QUICK, seed=0, defences=(Noise(0.0),)).snapshots["final"])


class Recompute(Defence):
    """Compute the gradient through the hook, changing nothing."""

    hooks: ClassVar[tuple[Hook, ...]] = ("compute",)

    def __str__(self) -> str:
        return "recompute"

    def compute(self, inner: Compute) -> Compute:
        def compute(model: nn.Module, loss: Loss, batch: Batch, generator: torch.Generator) -> Tensors:
            return inner(model, loss, batch, generator)

        return compute


def test_a_compute_hook_gives_the_gradient_and_buffers_still_follow(small: DataSet) -> None:
    settings = replace(QUICK, epochs=1, learning_rate=0.01)
    plain = train(make(small, "convnet-2"), small, settings, seed=0)
    hooked = train(make(small, "convnet-2"), small, settings, seed=0, defences=(Recompute(),))
    assert plain.curves[0].train_loss == pytest.approx(hooked.curves[0].train_loss, rel=1e-3)
    for name, tensor in plain.snapshots["final"].items():
        torch.testing.assert_close(hooked.snapshots["final"][name], tensor, rtol=1e-3, atol=1e-4)


def test_it_learns(small: DataSet) -> None:
    result = train(make(small), small, replace(FAST, epochs=20, batch_size=16, learning_rate=0.02, threads=1), seed=0)
    assert result.test_accuracy > 0.5
    assert result.curves[-1].train_loss < result.curves[0].train_loss
    assert [point.epoch for point in result.curves] == list(range(1, 21))
    assert result.seconds >= result.curves[-1].seconds > result.curves[0].seconds > 0


def test_a_fraction_has_the_same_share_of_every_class() -> None:
    labels = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)
    images = ImageSet(torch.zeros(100, 1, 2, 2, dtype=torch.uint8), labels)
    for seed in range(5):
        assert take_fraction(images, 0.1, seed).labels.bincount().tolist() == [6, 3, 1]


def test_a_fraction_is_fixed_by_the_seed(small: DataSet) -> None:
    seen: list[Tensor] = []

    class Spy(Defence):
        hooks: ClassVar[tuple[Hook, ...]] = ("batch",)

        def __str__(self) -> str:
            return "spy"

        def batch(self, batch: Batch, generator: torch.Generator) -> Batch:
            assert generator.device.type == "cpu"
            seen.append(batch.images)
            return batch

    def images(seed: int) -> set[bytes]:
        seen.clear()
        settings = replace(QUICK, epochs=3, fraction=0.25, batch_size=40)
        train(make(small), small, settings, seed=seed, defences=(Spy(),))
        assert len(seen) == 3
        return {image.numpy().tobytes() for batch in seen for image in batch}

    assert len(images(0)) == 40
    assert images(0) == images(0)
    assert images(0) != images(1)


def test_only_epochs_whose_turn_it_is_are_tested_and_always_the_last(small: DataSet) -> None:
    result = train(make(small), small, replace(QUICK, epochs=5, test_every=2), seed=0)
    assert [point.test_accuracy is not None for point in result.curves] == [False, True, False, True, True]
    assert result.curves[-1].test_accuracy == result.test_accuracy


def test_progress_is_told_after_every_step(small: DataSet) -> None:
    told: list[TrainingProgress] = []
    train(make(small), small, QUICK, seed=0, progress=told.append)
    assert [(one.step, one.epoch) for one in told] == [(step, 1 if step <= 5 else 2) for step in range(1, 11)]
    assert told[-1].steps == 10
    assert told[3].latest is None
    assert told[4].latest is not None


def test_threads_are_put_back(small: DataSet) -> None:
    before = torch.get_num_threads()
    with pytest.raises(DivergenceError, match="diverged"):
        train(make(small), small, replace(QUICK, learning_rate=1e6, threads=before + 1), seed=0)
    assert torch.get_num_threads() == before


class KillError(Exception):
    """Stands for a kill."""


def interrupted(run: Callable[..., TrainingResult], step: int) -> None:
    def stop(progress: TrainingProgress) -> None:
        if progress.step == step:
            raise KillError

    with pytest.raises(KillError):
        run(progress=stop)


@pytest.mark.parametrize("step", [1, 5, 7])
@pytest.mark.parametrize(("channels_last", "muon"), [(False, 0.0), (True, 0.0), (True, 0.2)])
def test_resuming_gives_the_same_bits(
    small: DataSet, tmp_path: Path, step: int, channels_last: bool, muon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradveil.training.loop.SAVE_SECONDS", 0.0)
    settings = replace(QUICK, channels_last=channels_last, muon=muon, fraction=0.5, batch_size=16)
    phases = ("init", "step-3", "epoch-1", "step-6", "final")

    def run(
        folder: Path, resume: bool = False, progress: Callable[[TrainingProgress], None] | None = None
    ) -> TrainingResult:
        return train(
            make(small, "convnet-2", seed=7 if resume else 0),
            small,
            settings,
            defences=(Shift(), Noise(1e-3)),
            seed=0,
            phases=phases,
            folder=folder,
            resume=resume,
            progress=progress,
        )

    whole = run(tmp_path / "whole")
    interrupted(lambda progress: run(tmp_path / "cut", progress=progress), step)
    again = run(tmp_path / "cut", resume=True)
    for phase in phases:
        assert same(whole.snapshots[phase], again.snapshots[phase]), phase
        names = [tmp_path / part / f"{phase}.safetensors" for part in ("whole", "cut")]
        assert names[0].read_bytes() == names[1].read_bytes()
    for one, other in zip(whole.curves, again.curves, strict=True):
        assert replace(one, seconds=0) == replace(other, seconds=0)
    assert run(tmp_path / "cut", resume=True).test_accuracy == whole.test_accuracy


@pytest.mark.parametrize("missing", ["final.json", "final.safetensors"])
def test_a_snapshot_of_the_present_step_that_is_not_whole_is_taken_again(
    small: DataSet, tmp_path: Path, missing: str
) -> None:
    whole = train(make(small), small, QUICK, seed=0, folder=tmp_path, spec=spec(small))
    (tmp_path / missing).unlink()
    again = train(make(small, seed=7), small, QUICK, seed=0, folder=tmp_path, spec=spec(small), resume=True)
    assert same(whole.snapshots["final"], again.snapshots["final"])
    assert same(load_checkpoint(tmp_path / "final.safetensors").weights, whole.snapshots["final"])
    (tmp_path / "init.json").unlink()
    with pytest.raises(CheckpointError, match=r"init\.json .*start the run again with --overwrite"):
        train(make(small), small, QUICK, seed=0, folder=tmp_path, spec=spec(small), resume=True)


def test_there_is_a_state_to_go_on_with_before_there_is_a_snapshot(
    small: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KillError

    with monkeypatch.context() as patch:
        patch.setattr("gradveil.training.state.save_checkpoint", stop)
        with pytest.raises(KillError):
            train(make(small), small, QUICK, seed=0, folder=tmp_path)
    again = train(make(small, seed=7), small, QUICK, seed=0, folder=tmp_path, resume=True)
    assert same(again.snapshots["final"], train(make(small), small, QUICK, seed=0).snapshots["final"])


def test_a_run_resumes_only_as_it_was_started(small: DataSet, tmp_path: Path) -> None:
    train(make(small), small, QUICK, seed=0, folder=tmp_path)
    with pytest.raises(SettingsError, match="seed 0, not 1"):
        train(make(small), small, QUICK, seed=1, folder=tmp_path, resume=True)
    with pytest.raises(SettingsError, match="settings"):
        train(make(small), small, replace(QUICK, epochs=3), seed=0, folder=tmp_path, resume=True)
    with pytest.raises(SettingsError, match="model LeNet, not MultilayerPerceptron"):
        train(make(small, "mlp"), small, QUICK, seed=0, folder=tmp_path, resume=True)
    other = models.build("lenet", (1, 28, 28), 11, small.mean, small.std, rng.generator(0, "model"))
    with pytest.raises(CheckpointError, match="another model"):
        train(other, small, QUICK, seed=0, folder=tmp_path, resume=True)
    with pytest.raises(CheckpointError, match="no run to resume"):
        train(make(small), small, QUICK, seed=0, folder=tmp_path / "new", resume=True)
    with pytest.raises(SettingsError, match="without a folder"):
        train(make(small), small, QUICK, seed=0, resume=True)
    (tmp_path / "resume.safetensors").write_bytes(b"torn")
    with pytest.raises(CheckpointError, match=r"cannot be read"):
        train(make(small), small, QUICK, seed=0, folder=tmp_path, resume=True)


def test_snapshots_in_a_folder_are_checkpoints(small: DataSet, tmp_path: Path) -> None:
    result = train(make(small), small, QUICK, seed=0, folder=tmp_path, spec=spec(small))
    checkpoint = load_checkpoint(tmp_path / "final.safetensors")
    assert same(checkpoint.weights, result.snapshots["final"])
    assert accuracy(checkpoint.build(), small.test) == result.test_accuracy
    assert checkpoint.made["settings"] == QUICK.to_record()
    assert (checkpoint.made["phase"], checkpoint.made["step"], checkpoint.made["seed"]) == ("final", 10, 0)


def test_a_phase_after_the_end_is_refused_before_training(small: DataSet) -> None:
    with pytest.raises(SettingsError, match="from epoch-1 to epoch-2"):
        train(make(small), small, QUICK, seed=0, phases=("epoch-3",))


@pytest.mark.parametrize(("name", "taken"), [("resnet18-w4", False), ("resnet18-w8", True), ("convnet-2", True)])
def test_a_layout_that_torch_cannot_take_is_left_alone(small: DataSet, name: str, taken: bool) -> None:
    """Without this guard the first of these corrupts memory on machines with AVX2."""
    model = make(small, name)
    assert has_faulty_layer(model) is not taken
    result = train(model, small, replace(FAST, epochs=1, batch_size=40, threads=1), seed=0)
    assert torch.tensor(result.curves[0].train_loss).isfinite()
