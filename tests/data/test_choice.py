"""Images are chosen at random, balanced over the classes, and never twice."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gradveil.data import DataSet, choose_attacked, choose_private, choose_public, choose_scored, spread, stratify
from gradveil.data.base import ImageSet, assemble
from gradveil.data.choice import number_members, order_from_both_ends
from gradveil.errors import SettingsError
from gradveil.rng import generator

COUNT = 40
labels_of_any_kind = st.one_of(
    st.lists(st.integers(0, 4), max_size=60),
    st.lists(st.sampled_from([0, 3, 90]), max_size=40),  # gaps
    st.integers(0, 30).map(lambda count: [7] * count),  # one class
    st.integers(0, 30).map(lambda count: list(range(count))),  # classes of one image
).map(lambda labels: torch.tensor(sorted(labels), dtype=torch.int64))


def make_data() -> DataSet:
    """Make images, stored class by class, whose first pixel is their number."""
    images = torch.randint(256, (COUNT, 1, 4, 4), generator=generator(0, "images")).to(torch.uint8)
    images[:, 0, 0, 0] = torch.arange(COUNT)
    every = ImageSet(images, torch.arange(COUNT) // 8)
    return assemble("numbered", every, every, tuple("abcde"))


def numbers(images: ImageSet) -> list[int]:
    return [int(number) for number in images.images[:, 0, 0, 0]]


def is_balanced(chosen: Tensor, available: Tensor) -> bool:
    """Tell whether no class could give way to another that has fewer images in the choice and some left."""
    taken, there = Counter(chosen.tolist()), Counter(available.tolist())
    fewest = min((taken[label] for label in there if taken[label] < there[label]), default=len(chosen))
    return max(taken.values(), default=0) <= fewest + 1


DATA = make_data()


@given(labels_of_any_kind, st.integers(0, 1000))
def test_every_prefix_of_a_stratified_order_is_balanced(labels: Tensor, seed: int) -> None:
    order = stratify(labels, generator(seed, "order"))
    assert sorted(order.tolist()) == list(range(len(labels)))
    assert all(is_balanced(labels[order[:count]], labels) for count in range(len(labels) + 1))
    assert order.equal(stratify(labels, generator(seed, "order")))


@given(labels_of_any_kind, st.integers(0, 1000))
def test_both_ends_of_an_order_are_balanced_up_to_half_of_each_class(labels: Tensor, seed: int) -> None:
    order = order_from_both_ends(labels, generator(seed, "order"))
    assert sorted(order.tolist()) == list(range(len(labels)))
    halves = {True: [], False: []}  # type: dict[bool, list[int]]
    for label, size in Counter(labels.tolist()).items():
        halves[True] += [label] * ((size + 1) // 2)
        halves[False] += [label] * (size // 2)
    for front, way in ((True, order), (False, order.flip(0))):
        half = torch.tensor(halves[front], dtype=torch.int64)
        assert sorted(labels[way[: len(half)]].tolist()) == halves[front]
        assert all(is_balanced(labels[way[:count]], half) for count in range(len(half) + 1))


@given(labels_of_any_kind, st.integers(0, 1000))
def test_every_prefix_of_a_spread_order_has_the_proportions_of_all(labels: Tensor, seed: int) -> None:
    order = spread(labels, generator(seed, "order"))
    assert sorted(order.tolist()) == list(range(len(labels)))
    for label, size in Counter(labels.tolist()).items():
        counts = (labels[order] == label).cumsum(0)
        wanted = size * torch.arange(1, len(labels) + 1) / len(labels)
        # Each class is off by less than one of its own, and the prefix ends at any of the others.
        assert float((counts - wanted).abs().max()) <= 1 + size * len(set(labels.tolist())) / len(labels)


def test_the_order_is_random() -> None:
    labels = torch.arange(40) % 4
    orders = [tuple(stratify(labels, generator(seed, "order")).tolist()) for seed in range(20)]
    assert len(set(orders)) == 20
    assert {order[0] for order in orders} > {0, 1} or len({order[0] for order in orders}) > 8
    # The classes of a round come in a new order: with a fixed one, all rounds would be alike.
    rounds = labels[list(orders[0])].view(10, 4)
    assert len({tuple(one.tolist()) for one in rounds}) > 3
    assert number_members(torch.tensor([2, 2, 0, 2])).tolist() == [0, 1, 0, 2]


def test_public_images_are_the_first_of_a_fixed_order() -> None:
    order = order_from_both_ends(DATA.train.labels, generator(3, "floor", "images")).tolist()
    chosen = choose_public(DATA, 10, 3)
    assert numbers(chosen) == order[:10]
    assert Counter(chosen.labels.tolist()) == dict.fromkeys(range(5), 2)
    assert numbers(choose_public(DATA, 10**6, 3)) == order
    assert numbers(choose_public(DATA, 10, 4)) != order[:10]


@given(st.integers(0, COUNT), st.integers(0, COUNT), st.integers(0, 1000))
def test_private_images_are_never_public(public: int, private: int, seed: int) -> None:
    if public + private > COUNT:
        with pytest.raises(
            SettingsError, match=rf"40 training images of numbered leave {COUNT - public}; ask for fewer"
        ):
            choose_private(DATA, private, seed, public=public)
        return
    ours = numbers(choose_private(DATA, private, seed, public=public))
    assert len(set(ours)) == private
    assert not set(ours) & set(numbers(choose_public(DATA, public, seed)))


def test_the_number_of_public_images_does_not_change_the_private_ones() -> None:
    choices = [numbers(choose_private(DATA, 5, 0, public=public)) for public in (0, 10, 35)]
    assert choices[0] == choices[1] == choices[2]


@given(st.integers(1, COUNT - 1), st.data(), st.integers(0, 1000))
def test_scored_images_are_never_attacked(attacked: int, data: st.DataObject, seed: int) -> None:
    scored = data.draw(st.integers(1, COUNT - attacked))
    first, last = choose_attacked(DATA, attacked, seed), choose_scored(DATA, scored, seed)
    assert len({*first, *last}) == attacked + scored
    assert choose_attacked(DATA, COUNT, seed)[:attacked] == first
    for places in (first, last):
        counts = Counter(DATA.test.labels[list(places)].tolist())
        assert max(counts.values()) - min(counts[label] for label in range(5)) <= 1


@pytest.mark.parametrize("choose", [choose_attacked, choose_scored])
@pytest.mark.parametrize("count", [0, COUNT + 1])
def test_more_than_there_are_is_refused(choose: type, count: int) -> None:
    with pytest.raises(SettingsError, match=f"{count} images to .*: numbered has 40 test images"):
        choose(DATA, count, 0)
