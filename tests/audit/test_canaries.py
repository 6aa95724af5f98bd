"""Canaries: attacked like every image, never counted in the verdict."""

from dataclasses import replace

import pytest
import torch

from gradveil.audit import Audit, AuditSettings
from gradveil.audit.canaries import CanaryReading, chance_of_reading
from gradveil.errors import SettingsError
from tests.audit.test_audit import SMALL, small_data

TINY = replace(SMALL, phases=("init",), arms=("none",), images=2, steps=2)


@pytest.mark.slow
def test_they_are_read_without_a_defence_and_not_under_noise() -> None:
    settings = AuditSettings(phases=("init",), arms=("none", "dpsgd:noise=1.1:clip=1"), images=2, canaries=4)
    report = Audit(settings, data=small_data()).run()
    read = {arm: [one.read for one in report.canaries if one.arm == arm] for arm in settings.arms}
    assert read["none"] == [True] * 4
    assert read["dpsgd:noise=1.1:clip=1"] == [False] * 4
    assert report.canary_chance == 1 / 256


def test_they_add_no_row_and_change_no_figure() -> None:
    plain, with_cards = (Audit(replace(TINY, canaries=count), data=small_data()).run() for count in (0, 3))
    figures = [[row.psnr_transformed for row in report.rows] for report in (plain, with_cards)]
    assert figures[0] == figures[1]
    assert plain.to_figures()["canaries"] == []
    assert plain.to_figures()["canary_chance"] is None
    assert [one["image"] for one in with_cards.to_figures()["canaries"]] == [0, 1, 2]


def test_in_a_batch_a_card_replaces_one_image_and_the_others_stay() -> None:
    settings = replace(TINY, images=4, images_per_client=2, participants=2, canaries=2)
    audit = Audit(settings, data=small_data())
    (plain,), (first, second) = audit.shares(), audit.canaries().rounds
    assert first[0].places == (50, plain[0].places[1])
    assert second[0].places == (51, plain[0].places[1])
    assert torch.equal(first[0].batch.labels, plain[0].batch.labels)
    assert torch.equal(first[0].batch.images[1], plain[0].batch.images[1])
    assert not torch.equal(first[0].batch.images[0], plain[0].batch.images[0])
    assert torch.equal(first[1].batch.images, plain[1].batch.images)
    report = audit.run()
    assert [(one.image, len(one.text)) for one in report.canaries] == [(0, 2), (1, 2)]
    assert report.canary_chance == chance_of_reading(4) == 4 / 256


def test_only_the_right_text_counts_as_read() -> None:
    readings = [CanaryReading("none", "init", "fast", 0, "K9", decoded) for decoded in ("K9", "9K", None)]
    assert [one.to_record()["read"] for one in readings] == [True, False, False]


def test_images_that_are_too_small_are_refused_before_anything_is_run() -> None:
    sample = small_data()
    tiny = replace(
        sample,
        train=replace(sample.train, images=sample.train.images[:, :, :10, :10]),
        test=replace(sample.test, images=sample.test.images[:, :, :10, :10]),
    )
    with pytest.raises(SettingsError, match="a canary needs images"):
        Audit(replace(TINY, model="mlp", canaries=1), data=tiny)
