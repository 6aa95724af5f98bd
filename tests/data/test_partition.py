import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from gradveil.data.partition import ByClass, Dirichlet, Iid, Partition, parse_partition, partition_images
from gradveil.errors import InputError, SettingsError
from gradveil.rng import generator

WAYS: list[Partition] = [Iid(), Dirichlet(0.1), Dirichlet(100.0), ByClass(2)]
LABELS = torch.arange(1000) % 10


def deal(labels: Tensor, participants: int, how: Partition, seed: int = 0) -> list[Tensor]:
    return partition_images(labels, participants, how, generator(seed, "partition"))


def class_counts(labels: Tensor, shares: list[Tensor]) -> Tensor:
    """Count the images of each class (column) that each participant (row) has."""
    return torch.stack([torch.bincount(labels[share], minlength=int(labels.max()) + 1) for share in shares])


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=60),
    st.integers(1, 12),
    st.one_of(st.just(Iid()), st.builds(Dirichlet, st.floats(1e-4, 1e6)), st.builds(ByClass, st.integers(1, 7))),
    st.integers(0, 2**63 - 1),
)
def test_every_image_goes_to_one_participant_and_everyone_gets_some(
    labels: list[int], participants: int, how: Partition, seed: int
) -> None:
    classes = len(set(labels))
    assume(participants <= len(labels))
    if isinstance(how, ByClass):
        assume(classes <= how.classes * participants and how.classes <= classes)
    shares = deal(torch.tensor(labels), participants, how, seed)
    assert len(shares) == participants
    assert sorted(position for share in shares for position in share.tolist()) == list(range(len(labels)))
    assert all(len(share) > 0 for share in shares)
    assert all(share.tolist() == sorted(share.tolist()) for share in shares)


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_the_seed_decides(how: Partition) -> None:
    one, again, other = (deal(LABELS, 10, how, seed) for seed in (3, 3, 4))
    assert all(torch.equal(left, right) for left, right in zip(one, again, strict=True))
    assert not all(torch.equal(left, right) for left, right in zip(one, other, strict=True))


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_the_global_random_state_is_left_alone(how: Partition) -> None:
    before = torch.random.get_rng_state()
    deal(LABELS, 10, how)
    assert torch.equal(before, torch.random.get_rng_state())


@given(st.integers(1, 200), st.integers(1, 30))
def test_equal_shares_differ_by_one_at_most(count: int, participants: int) -> None:
    assume(participants <= count)
    sizes = {len(share) for share in deal(torch.zeros(count, dtype=torch.int64), participants, Iid())}
    assert max(sizes) - min(sizes) <= 1


def test_equal_shares_are_drawn_without_regard_to_class() -> None:
    counts = class_counts(LABELS, deal(LABELS, 10, Iid()))
    assert (counts > 0).all()
    assert counts.float().std() > 1  # not stratified: about sqrt(10 × 0.9 × 0.9)


def test_a_small_alpha_makes_participants_differ_and_a_large_one_alike() -> None:
    few, many = (class_counts(LABELS, deal(LABELS, 10, Dirichlet(alpha))) for alpha in (0.001, 1e5))
    assert few.max(dim=0).values.float().mean() > 90  # nearly all of a class in one hand
    assert ((many - 10).abs() <= 1).all()


def test_dirichlet_shares_have_the_variance_of_the_distribution() -> None:
    alpha, participants = 0.5, 5
    labels = torch.arange(400_000) % 400
    shares = class_counts(labels, deal(labels, participants, Dirichlet(alpha))).double() / 1000
    expected = (1 / participants) * (1 - 1 / participants) / (participants * alpha + 1)
    assert shares.mean().item() == pytest.approx(1 / participants, abs=1e-9)
    assert shares.var().item() == pytest.approx(expected, rel=0.1)


@given(st.integers(1, 10), st.integers(1, 20), st.integers(0, 100))
def test_by_class_gives_the_number_of_classes_asked_for(classes: int, participants: int, seed: int) -> None:
    assume(classes * participants >= 10)
    counts = class_counts(LABELS, deal(LABELS, participants, ByClass(classes), seed))
    assert ((counts > 0).sum(dim=1) == classes).all()
    for column in counts.T:
        held = column[column > 0]
        assert held.max() - held.min() <= 1


def test_by_class_with_one_class_each_is_one_class_each() -> None:
    counts = class_counts(LABELS, deal(LABELS, 10, ByClass(1)))
    assert sorted(counts.argmax(dim=1).tolist()) == list(range(10))
    assert (counts.max(dim=1).values == 100).all()


def test_classes_that_are_absent_do_not_count() -> None:
    labels = torch.tensor([3, 3, 7, 7])
    assert sorted(share.tolist() for share in deal(labels, 2, ByClass(1))) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("participants", [0, -1, 1001])
def test_there_must_be_an_image_for_each(participants: int) -> None:
    with pytest.raises(SettingsError, match=f"{participants} participants for 1000 images"):
        deal(LABELS, participants, Iid())


@pytest.mark.parametrize(("classes", "participants"), [(1, 9), (11, 5), (4, 2)])
def test_every_class_needs_a_holder(classes: int, participants: int) -> None:
    with pytest.raises(SettingsError, match="give each from"):
        deal(LABELS, participants, ByClass(classes))


@pytest.mark.parametrize(
    ("text", "expected"), [("iid", Iid()), ("dirichlet:0.5", Dirichlet(0.5)), ("classes:2", ByClass(2))]
)
def test_a_partition_is_read_from_text(text: str, expected: Partition) -> None:
    assert parse_partition(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "iid:1", "idd", "dirichlet", "dirichlet:", "dirichlet:x", "dirichlet:0", "dirichlet:-1"),
        *("dirichlet:nan", "dirichlet:inf", "classes", "classes:0", "classes:1.5"),
    ],
)
def test_what_is_no_partition_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"partition|out of range"):
        parse_partition(text)
