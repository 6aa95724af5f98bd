"""The audit as a whole: small, but real; by name and with objects of one's own."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from gradveil import data
from gradveil.attacks import Attack, Learned, Progress, find_attack
from gradveil.audit import Audit, AuditReport, AuditSettings, KeptWork, Row, describe_work, run_audit
from gradveil.data import DataSet, ImageSet
from gradveil.defences import CropFlip, Defence, Hook
from gradveil.errors import InputError, SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import BRIEF
from gradveil.types import LocalTraining, Reconstruction, Task, Update
from gradveil.workers import Workers

SMALL = AuditSettings(
    arms=("none", "crop-flip", "policy:3-1-7,no-base"),
    phases=("init", "final"),
    images=3,
    steps=4,
    group=2,
    floor_images=200,
    training=replace(BRIEF, epochs=1, batch_size=50),
)


@cache
def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(300)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:50]))


@cache
def small_report(workers: int = 1) -> AuditReport:
    return run_audit(SMALL, small_data(), workers=workers)


def without_times(report: AuditReport) -> str:
    figures = report.to_figures()
    for entry in (*figures["rows"], *figures["summaries"]):
        entry.pop("seconds")
    return json.dumps(figures)


def test_there_is_a_row_for_every_image_arm_and_phase() -> None:
    keys = [(row.phase, row.arm, row.image) for row in small_report().rows]
    images = list(dict.fromkeys(row.image for row in small_report().rows))
    assert len(images) == 3
    assert keys == [(phase, arm, image) for phase in SMALL.phases for arm in SMALL.arms for image in images]


def test_every_advantage_is_the_score_less_its_floor() -> None:
    for row in small_report().rows:
        assert row.status == "ok"
        for target in ("transformed", "original"):
            score, floor, advantage = (
                getattr(row, f"{name}_{target}") for name in ("aligned", "aligned_floor", "advantage")
            )
            assert advantage == pytest.approx(score - floor)


def test_the_fed_picture_is_the_same_in_every_phase() -> None:
    report = small_report()
    half = len(report.pictures) // 2
    for first, second in zip(report.pictures[:half], report.pictures[half:], strict=True):
        assert torch.equal(first.transformed, second.transformed)
    for row, picture in zip(report.rows, report.pictures, strict=True):
        assert torch.equal(picture.original, picture.transformed) == (row.arm == "none")


def test_the_number_of_workers_changes_nothing() -> None:
    assert without_times(small_report(1)) == without_times(small_report(2))


def test_another_seed_changes_the_figures() -> None:
    one = run_audit(replace(SMALL, phases=("init",), arms=("none",)), small_data())
    other = run_audit(replace(SMALL, phases=("init",), arms=("none",), seed=1), small_data())
    assert without_times(one) != without_times(other)


def test_hidden_labels_take_the_class_mean_from_the_floor() -> None:
    settings = replace(SMALL, phases=("init",), arms=("none",), labels="hidden")
    report = run_audit(settings, small_data())
    assert "class mean" not in report.floors["none"].values()
    assert all(row.label_found is True for row in report.rows)


def test_the_record_has_the_promised_columns() -> None:
    promised = (
        "arm phase attack image status psnr_transformed psnr_original floor_transformed floor_original "
        "aligned_transformed aligned_original aligned_floor_transformed aligned_floor_original "
        "advantage_transformed advantage_original ssim_transformed ssim_original p_value reached hit identified rank "
        "candidates match_rebuilt match_truth matching_loss label_found seconds"
    )
    assert set(promised.split()) <= {field.name for field in fields(Row)}


def test_a_diverging_attack_is_a_failed_row() -> None:
    broken = small_data()
    poisoned = DataSet("poisoned", broken.train, broken.test, broken.class_names, broken.mean, (1e-45,))
    report = run_audit(replace(SMALL, phases=("init",), arms=("none",)), poisoned)
    assert {row.status for row in report.rows} == {"failed"}
    assert {row.psnr_transformed for row in report.rows} == {None}
    assert report.summaries[0].outcome == "untrusted"
    assert report.summaries[0].failed == 3


def test_more_images_than_there_are_is_refused() -> None:
    with pytest.raises(SettingsError, match="51 images of 50"):
        run_audit(replace(SMALL, images=51), small_data())


def test_a_phase_after_the_end_is_refused() -> None:
    with pytest.raises(SettingsError, match="after the end"):
        run_audit(replace(SMALL, phases=("epoch-2",)), small_data())


def test_one_class_set_still_has_its_floor() -> None:
    sample = small_data()
    only = ImageSet(sample.train.images, torch.zeros_like(sample.train.labels))
    report = run_audit(replace(SMALL, phases=("init",), arms=("none",)), replace(sample, train=only))
    assert all(row.floor_transformed is not None for row in report.rows)


def test_unknown_names_are_refused_before_anything_is_done() -> None:
    for change in ({"arms": ("policy:99-1",)}, {"attacks": ("magic",)}, {"model": "lenot"}):
        with pytest.raises(InputError):
            Audit(replace(SMALL, **change), data=small_data())


@dataclass(frozen=True)
class MeanColour(Attack):
    """A person's own attack: answer with the mean colour, whatever came."""

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
        flat = torch.tensor(task.mean).view(-1, 1, 1).expand(task.shape)
        return [
            Reconstruction(flat.expand(update.images, *task.shape), torch.zeros(update.images, dtype=torch.int64), 1.0)
            for update in updates
        ]


@dataclass(frozen=True, repr=False)
class Halve(Defence):
    """A person's own defence: release half of the update."""

    hooks: ClassVar[tuple[Hook, ...]] = ("release",)

    def __str__(self) -> str:
        return "halve"

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        return replace(update, tensors={name: tensor / 2 for name, tensor in update.tensors.items()})


class Small(nn.Module):
    """A person's own model."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 5, stride=3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(4 * 8 * 8, 10)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.body(images)
        logits: Tensor = self.head(hidden.view(len(hidden), -1))
        return logits


def test_attacks_defences_models_and_data_may_be_objects() -> None:
    sample = small_data()
    loader = DataLoader(TensorDataset(sample.train.images.float() / 255, sample.train.labels), batch_size=32)
    settings = replace(SMALL, images=4, images_per_client=2, floor_images=100)
    model = Small()
    report = Audit(
        replace(settings, steps=None),
        data=loader,
        model=model,
        arms=["none", Halve(), [CropFlip(), Halve()]],
        attacks={"flat": MeanColour(), "quick": find_attack("fast").with_steps(3)},
    ).run()
    assert [summary.arm for summary in report.summaries[::2]] == ["none", "halve", "crop-flip,halve"] * 2
    assert {row.attack for row in report.rows} == {"flat", "quick"}
    assert {row.status for row in report.rows} == {"ok"}
    assert report.settings.model == "Small"
    assert report.needs["flat"] == ("nothing",)


def test_one_attack_twice_is_refused_without_names() -> None:
    with pytest.raises(SettingsError, match="name each once"):
        Audit(SMALL, data=small_data(), attacks=["fast", "fast"])


@pytest.mark.parametrize(
    "change",
    [
        {"images": 4, "images_per_client": 2},
        {"images": 4, "images_per_client": 2, "local": LocalTraining(steps=2, batch_size=1, momentum=0.9)},
        {"images": 4, "images_per_client": 2, "local": LocalTraining(epochs=2, batch_size=1, shuffle=True)},
        {"images": 4, "images_per_client": 2, "participants": 2, "local": LocalTraining(mode="train")},
        {"images": 2, "local": LocalTraining(steps=3, optimiser="adam", learning_rate=1e-3)},
    ],
    ids=["batch", "momentum", "epochs", "aggregate", "adam"],
)
def test_batches_and_local_training_are_audited(change: dict[str, Any]) -> None:
    settings = replace(SMALL, phases=("init",), arms=("none", "policy:3-1-7"), model="convnet-2", **change)
    report = run_audit(settings, small_data())
    assert [row.status for row in report.rows] == ["ok"] * (2 * settings.images)
    shuffled, several = settings.local.shuffle, settings.local.count_steps(1) > 1 and settings.local.batch_size is None
    for row in report.rows:
        assert any("order of images" in text for text in row.approximations) == shuffled
        again = row.arm != "none" and (several or settings.local.epochs == 2)
        assert any("draws anew" in text for text in row.approximations) == again
    assert not any("differs" in notice for notice in report.notices) or shuffled


def test_an_attack_that_cannot_be_used_is_a_row_that_says_why() -> None:
    settings = replace(SMALL, phases=("init",), arms=("none",), steps=None)
    attacks = {"fast": find_attack("fast").with_steps(3), "analytic": find_attack("analytic")}
    report = Audit(settings, data=small_data(), attacks=attacks).run()
    refused = [row for row in report.rows if row.attack == "analytic"]
    assert [row.status for row in refused] == ["refused"] * 3
    assert all("fully connected" in row.reason for row in refused)
    assert {row.status for row in report.rows if row.attack == "fast"} == {"ok"}


def test_given_weights_are_attacked_without_training() -> None:
    weights = ModelSpec("lenet", (1, 28, 28), 10, (0.3,), (0.3,)).build(generator(5)).state_dict()
    audit = Audit(replace(SMALL, model="lenet", phases=("final",)), data=small_data(), weights={"final": weights})
    report = audit.run(keep_history=True)
    assert report.accuracies == {}
    assert {row.phase for row in report.rows} == {"final"}
    assert all(one.reconstruction.history for one in report.attacked)


def test_the_way_is_kept_of_the_worst_images_only() -> None:
    report = Audit(replace(SMALL, phases=("init",), arms=("none", "crop-flip")), data=small_data()).run(frames=1)
    for arm in ("none", "crop-flip"):
        pairs = [(row, one) for row, one in zip(report.rows, report.attacked, strict=True) if row.arm == arm]
        worst = max(pairs, key=lambda pair: pair[0].advantage or 0.0)
        assert [row.image for row, one in pairs if one.reconstruction.pictures] == [worst[0].image]
        assert not any(one.reconstruction.history for _, one in pairs)


def test_kept_work_gives_the_same_report_without_attacking_again(tmp_path: Path) -> None:
    kept = KeptWork(tmp_path)
    audit = Audit(replace(SMALL, canaries=1), data=small_data())
    first = audit.run(kept=kept)
    files = sorted(tmp_path.glob("*.safetensors"))
    assert len(files) == 3 + 6 * 2 + 6  # trainings, groups of two images, canaries
    files[0].unlink()
    times = {path: path.stat().st_mtime_ns for path in files[1:]}
    assert without_times(audit.run(kept=kept)) == without_times(first)
    assert {path: path.stat().st_mtime_ns for path in files[1:]} == times
    assert files[0].exists()


def test_looks_grow_by_groups_and_stop_when_all_is_settled() -> None:
    settings = replace(SMALL, phases=("init",), arms=("none",), steps=120, images=20, first_look=6, group=2)
    early = Audit(settings, data=small_data()).run().summaries[0]
    whole = Audit(replace(settings, stop_early=False), data=small_data()).run().summaries[0]
    assert (early.outcome, whole.outcome) == ("leaks", "leaks")
    assert (early.images, whole.images) == (6, 20)
    assert early.decided_after == whole.decided_after


def test_a_crew_of_ones_own_is_not_closed() -> None:
    settings = replace(SMALL, phases=("init",), arms=("none",))
    with Workers(2) as crew:
        reports = [Audit(settings, data=small_data()).run(workers=crew) for _ in range(2)]
    assert without_times(reports[0]) == without_times(reports[1])


def test_what_the_results_depend_on_is_described() -> None:
    described = describe_work(Audit(SMALL, data=small_data()), "cpu", "gradveil audit")
    assert described == describe_work(Audit(SMALL, data=small_data()), "cpu", "gradveil audit")
    sample = small_data()
    changed = replace(sample, test=ImageSet(255 - sample.test.images, sample.test.labels))
    other = describe_work(Audit(SMALL, data=changed), "cpu", None)
    assert {key for key in described if described[key] != other[key]} == {"images_and_weights", "command_line"}


def test_attacks_that_learn_have_images_that_no_client_has() -> None:
    settings = replace(SMALL, attacks=("learned", "fast"), steps=None)
    audit = Audit(settings, data=small_data(), attacks={"learned": Learned(public=600), "fast": find_attack("fast")})
    ours, theirs, first = (
        {image.numpy().tobytes() for image in images}
        for images in (audit.public_for("learned").images, audit.clients().train.images, audit.public.images)
    )
    attacked = {image.numpy().tobytes() for image in small_data().test.images[list(audit.places)]}
    assert (len(audit.public_for("learned")), len(audit.clients().train)) == (120, 180)
    assert ours.isdisjoint(theirs)
    assert ours.isdisjoint(attacked)
    assert {image.numpy().tobytes() for image in audit.public_for("fast").images} == first


def test_other_attacks_have_what_they_had_and_clients_train_on_all() -> None:
    audit = Audit(SMALL, data=small_data())
    assert audit.clients() is audit.data
    assert torch.equal(audit.public_for("fast").images, audit.public.images)
    assert len(audit.public) == 150


def test_public_images_may_be_given() -> None:
    given = small_data().test.take(torch.arange(40, 50)).batch()
    audit = Audit(replace(SMALL, steps=None), data=small_data(), attacks={"learned": Learned()}, public=given)
    assert audit.public_for("learned") is given
    assert audit.clients() is audit.data


@pytest.mark.slow
def test_an_attack_that_learns_is_audited_with_the_reserved_images() -> None:
    attack = Learned(draws=1, epochs=0, public=600)
    settings = replace(SMALL, arms=("none",), phases=("final",), steps=None)
    report = Audit(settings, data=small_data(), attacks={"learned": attack}).run()
    assert [row.status for row in report.rows] == ["ok"] * 3
    gains = [(row.psnr_original or 0) - (row.floor_original or 0) for row in report.rows]
    assert sum(gains) > 0
