"""Several rounds of the same images, attacked together."""

from dataclasses import replace

import pytest

from gradveil.attacks import ReleasedRound, attack_clients_together, attack_together
from gradveil.errors import KnowledgeError
from gradveil.metrics import psnr
from gradveil.rng import generator
from gradveil.transforms import parse_policy
from gradveil.types import Batch
from tests.attacks.scenes import make_task, policy_aware, recipe, release, sample, sample_task, update_of

POLICY = parse_policy("43")  # translateY up or down: two draws


def test_two_rounds_tell_more_than_one() -> None:
    task = sample_task(known=[f"policy:{POLICY}"])
    images, labels = sample().test.images[:1], sample().test.labels[:1]
    fed = [Batch(POLICY.apply(images, POLICY.draws()[draw]), labels) for draw in (0, 1)]
    rounds = [ReleasedRound(task, update_of(task, batch)) for batch in fed]
    seen: list[tuple[int, int]] = []
    alone = policy_aware(80)(task, rounds[0].update, generator(0))
    both = attack_together(policy_aware(80), rounds, generator(0), lambda *at: seen.append(at))
    assert float(psnr(both.images, images / 255)) > float(psnr(alone.images, images / 255))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_rounds_without_a_policy_are_matched_at_once() -> None:
    task, other = make_task(), replace(make_task(), model=make_task("lenet").model)
    rounds = [ReleasedRound(one, release(one)) for one in (task, other)]
    seen: list[tuple[int, int]] = []
    result = attack_together(recipe("fast").with_steps(4), rounds, generator(0), lambda *at: seen.append(at))
    assert result.status == "ok"
    assert seen == [(1, 1)]


def test_rounds_that_cannot_be_of_the_same_images_are_refused() -> None:
    task = make_task()
    with pytest.raises(KnowledgeError, match="at least one"):
        attack_together(policy_aware(2), [], generator(0))
    rounds = [ReleasedRound(task, release(task, count=count)) for count in (1, 2)]
    with pytest.raises(KnowledgeError, match="different numbers"):
        attack_together(recipe("fast"), rounds, generator(0))


def test_clients_side_by_side_are_attacked_as_each_alone() -> None:
    task = make_task(known=[f"policy:{POLICY}"])
    clients = [[ReleasedRound(task, release(task, image)) for _ in range(2)] for image in (0, 1)]
    many = attack_clients_together(policy_aware(6), clients, [generator(0), generator(1)])
    alone = [attack_together(policy_aware(6), own, generator(place)) for place, own in enumerate(clients)]
    for one, other in zip(many, alone, strict=True):
        assert float(((one.images - other.images).abs() < 0.02).float().mean()) > 0.9
    with pytest.raises(KnowledgeError, match="side by side"):
        attack_clients_together(policy_aware(6), [clients[0], clients[1][:1]], [generator(0), generator(1)])
