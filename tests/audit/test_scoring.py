"""A row: every score beside its floor and its null, and nothing but a reason where there is no result."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from gradveil import data
from gradveil.audit import Attacked, Candidates, Cell, FloorSettings, Row, Scorer, choose_candidates, make_floors
from gradveil.data import choose_attacked
from gradveil.defences import parse_arm
from gradveil.rounds import Truth
from gradveil.types import Reconstruction, to_pixels

SAMPLE = data.load("fashion-mnist-sample")
PLACES = choose_attacked(SAMPLE, 20, 0)


@cache
def scorer(images: int = 1) -> Scorer:
    arm = parse_arm("none")
    floors = make_floors(SAMPLE, [arm], FloorSettings(400, True, images), lambda _: None)["none"]
    pool = choose_candidates(SAMPLE, PLACES, SAMPLE.test.labels[list(PLACES)], 0)
    return Scorer(floors, Candidates(pool, arm, floors, 0), 1.0, True, 0)


def attacked(result: Reconstruction, place: int = PLACES[0], fed_label: int | None = None) -> Attacked:
    original, label = to_pixels(SAMPLE.test.images[place : place + 1]), int(SAMPLE.test.labels[place])
    truth = Truth(place, label, original, original.flip(3), label if fed_label is None else fed_label)
    return Attacked(truth, result, 2.0, 1.0, (), 0.1, 0.2)


def rebuilt(place: int = PLACES[0], flip: bool = False) -> Reconstruction:
    image = to_pixels(SAMPLE.test.images[place : place + 1])
    return Reconstruction(image.flip(3) if flip else image, SAMPLE.test.labels[place : place + 1], 0.1)


def score(*one: Attacked) -> Row:
    return scorer().score_cell("none", "init", "fast", [[each] for each in one]).rows[0]


def test_each_guess_is_judged_where_it_belongs() -> None:
    result = rebuilt()
    row = score(attacked(replace(result, transformed=result.images.flip(3))))
    assert row.psnr_original is not None
    assert row.psnr_transformed is not None
    assert min(row.psnr_original, row.psnr_transformed) > 80
    assert row.label_found is True
    assert (row.seconds, row.match_rebuilt, row.match_truth) == (2.0, 0.1, 0.2)


def test_a_flip_is_given_away_at_both_targets() -> None:
    row = score(attacked(rebuilt(flip=True)))
    assert row.aligned_original is not None
    assert row.aligned_transformed is not None
    assert row.psnr_original is not None
    assert min(row.aligned_original, row.aligned_transformed) > 60 > row.psnr_original


def test_where_both_targets_are_the_same_picture_both_scores_are_the_same() -> None:
    generator = torch.Generator().manual_seed(0)
    one = attacked(rebuilt())
    truth = replace(one.truth, transformed=one.truth.original)
    noisy = one.reconstruction.images * 0.5 + 0.1 * torch.rand(1, 1, 28, 28, generator=generator)
    row = score(replace(one, truth=truth, reconstruction=replace(one.reconstruction, images=noisy)))
    assert row.advantage_transformed == pytest.approx(row.advantage_original, abs=0.3)
    assert row.aligned_transformed == pytest.approx(row.aligned_original, abs=0.3)


def test_the_label_that_was_fed_counts() -> None:
    other = (int(SAMPLE.test.labels[PLACES[0]]) + 1) % 10
    assert score(attacked(rebuilt(), fed_label=other)).label_found is False


def test_a_picture_that_was_rebuilt_stands_out_of_its_null() -> None:
    row = score(attacked(rebuilt()))
    assert (row.reached, row.identified, row.rank, row.crowd, row.candidates) == (True, True, 1, 20, 201)
    assert row.p_value is not None
    assert row.p_value < 0.005


def test_another_image_of_the_class_does_not() -> None:
    """The wrong-gradient control itself: over many images, few pass the limit and one in twenty is picked out."""
    rounds = []
    for place in PLACES:
        label = SAMPLE.test.labels[place]
        others = (SAMPLE.train.labels == label).nonzero().flatten().tolist()[-10:]
        for other in others:
            image = to_pixels(SAMPLE.train.images[other : other + 1])
            rounds.append([attacked(Reconstruction(image, label[None], 0.1), place)])
    cell = scorer().score_cell("none", "init", "fast", rounds)
    passed = [row.limit is not None and row.statistic is not None and row.statistic > row.limit for row in cell.rows]
    # Pictures that are no candidates, against images that are no candidates: 200 pairs, of 20 images.
    assert sum(passed) / len(passed) < 0.06
    assert sum(row.identified is True for row in cell.rows) / len(cell.rows) < 0.12
    assert 0.25 < sum((row.p_value or 1) < 0.5 for row in cell.rows) / len(cell.rows) < 0.75


def test_without_a_result_there_is_a_reason_and_no_figure() -> None:
    for status in ("failed", "refused"):
        result = Reconstruction(torch.zeros(1, 1, 28, 28), torch.tensor([0]), float("inf"), status, reason="it broke")
        row = score(attacked(result))
        assert (row.status, row.reason, row.psnr_transformed, row.matching_loss) == (status, "it broke", None, None)
        assert row.to_record()["reason"] == "it broke"


def test_without_other_images_of_the_class_there_is_no_control() -> None:
    few = scorer()
    pool = SAMPLE.train.take((SAMPLE.train.labels != SAMPLE.test.labels[PLACES[0]]).nonzero().flatten()[:100])
    bare = replace(few, candidates=Candidates(pool, parse_arm("none"), few.floors, 0))
    (row,) = bare.score_cell("none", "init", "fast", [[attacked(rebuilt())]]).rows
    assert (row.reached, row.p_value, row.identified) == (None, None, None)
    assert row.advantage is not None
    assert row.advantage > 20


def test_the_null_of_a_round_is_paired_as_the_round_was() -> None:
    """Eight pictures of no image gain by pairing: their null gains as much."""
    generator = torch.Generator().manual_seed(1)
    places = list(PLACES[:8])
    labels = torch.zeros(8, dtype=torch.int64)

    def cell(seeds: range) -> Cell:
        rounds = []
        for _ in seeds:
            chosen = torch.randperm(len(SAMPLE.train), generator=generator)[:8]
            pictures = to_pixels(SAMPLE.train.images[chosen])
            rounds.append(
                [
                    attacked(Reconstruction(pictures[at : at + 1], labels[:1], 0.1), place)
                    for at, place in enumerate(places)
                ]
            )
        return scorer(8).score_cell("none", "init", "fast", rounds)

    made = cell(range(4))
    statistics = [row.statistic for row in made.rows if row.statistic is not None]
    null = sum(made.null) / len(made.null)
    # The rounds above were not paired with their truth, the null was: it must lie higher.
    assert sum(statistics) / len(statistics) < null


def test_a_row_goes_to_json_and_back() -> None:
    row = score(attacked(rebuilt()))
    again = Row.from_record(row.to_record())
    assert again.approximations == ()
    assert again.to_record() == row.to_record()
