"""Other images of the attacked classes: the null of every score."""

import torch

from gradveil import data
from gradveil.audit import Candidates, Floors, FloorSettings, choose_candidates, make_floors
from gradveil.data import choose_attacked, choose_public
from gradveil.defences import parse_arm
from gradveil.metrics import align
from gradveil.types import to_pixels

SAMPLE = data.load("fashion-mnist-sample")


def make(arm: str) -> tuple[Candidates, torch.Tensor, Floors]:
    places = choose_attacked(SAMPLE, 8, 0)
    labels = SAMPLE.test.labels[list(places)]
    floors = make_floors(SAMPLE, [parse_arm(arm)], FloorSettings(300), lambda _: None)[arm]
    return Candidates(choose_candidates(SAMPLE, places, labels, 0), parse_arm(arm), floors, 0), labels, floors


def test_candidates_are_of_the_attacked_classes_and_not_attacked() -> None:
    places = choose_attacked(SAMPLE, 3, 0)
    labels = SAMPLE.test.labels[list(places)]
    pool = choose_candidates(SAMPLE, places, labels, 0)
    assert set(pool.labels.tolist()) == set(labels.tolist())
    assert int(torch.bincount(pool.labels).max()) == 200
    attacked = SAMPLE.test.images[list(places)]
    assert not any(torch.equal(image, one) for one in attacked for image in pool.images)


def test_public_images_come_last() -> None:
    places = choose_attacked(SAMPLE, 1, 0)
    pool = choose_candidates(SAMPLE, places, SAMPLE.test.labels[list(places)], 0)
    public = {image.numpy().tobytes() for image in choose_public(SAMPLE, 500, 0).images}
    assert not any(image.numpy().tobytes() in public for image in pool.images)


def test_the_control_of_one_image_is_its_score_at_every_candidate() -> None:
    candidates, labels, floors = make("none")
    crowd = candidates.crowds[int(labels[0])]
    guess = to_pixels(SAMPLE.test.images[5:6])
    (scores,) = candidates.control(guess, guess, labels[:1], labels[:1], torch.Generator().manual_seed(0))
    assert scores.shape == (len(crowd), 2) == (200, 2)
    fill = floors.transformed_aligned.fill(labels[:1]).expand_as(crowd.transformed)
    direct = align(guess.expand_as(fill), crowd.transformed, fill).psnr
    floor = align(fill, crowd.transformed, fill).psnr
    assert torch.allclose(scores[:, 0].sort().values, (direct - floor).sort().values)
    # Without a defence T(x) is x.
    assert torch.allclose(scores[:, 0], scores[:, 1], atol=0.3)


def test_a_set_of_a_round_holds_no_candidate_twice_and_has_its_labels() -> None:
    candidates, labels, _ = make("none")
    doubled = [int(labels[0]), int(labels[1]), int(labels[0])]
    sets = candidates.draw_sets(doubled, torch.Generator().manual_seed(0))
    assert sets.shape == (100, 3)
    assert all(len({int(row[0]), int(row[2])}) == 2 for row in sets)


def test_a_label_without_candidates_has_no_control() -> None:
    candidates, *_ = make("none")
    guess = torch.rand(1, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    missing = torch.tensor([77])
    assert candidates.control(guess, guess, missing, missing, torch.Generator())[0].shape == (0, 2)


def test_the_arm_shows_the_candidates_as_it_feeds_images() -> None:
    plain, labels, _ = make("none")
    moved, *_ = make("policy:3-1-7")
    label = int(labels[0])
    assert not torch.equal(plain.crowds[label].transformed, moved.crowds[label].transformed)
