"""Candidates: uniform over policies, named by their number, the same function once."""

import torch

from gradveil.rng import generator
from gradveil.scores import function_of
from gradveil.search.candidates import count_policies, draw_candidates, draw_policy, policy_at, put_together
from gradveil.transforms import CATALOGUE, Policy


def test_every_policy_has_one_place() -> None:
    assert [count_policies(length) for length in (1, 2, 3)] == [50, 2550, 127_550]
    assert len({policy_at(place) for place in range(count_policies(2))}) == count_policies(2)
    places = sorted(set(torch.randint(count_policies(), (2000,), generator=generator(0)).tolist()))
    policies = [policy_at(place) for place in places]
    assert len(set(policies)) == len(places)
    assert {len(policy.indices) for policy in policies} == {2, 3}


def test_a_candidate_does_not_depend_on_how_many_there_are() -> None:
    few, many = draw_candidates(3, 20), draw_candidates(3, 60)
    assert [one.policy for one in few] == [one.policy for one in many[: len(few)]]
    assert draw_policy(3, 7) == draw_policy(3, 7) != draw_policy(4, 7)


def test_draws_are_uniform_over_policies() -> None:
    drawn = [draw_policy(0, number) for number in range(4000)]
    lengths = [sum(len(policy.indices) == length for policy in drawn) for length in (1, 2, 3)]
    assert lengths[2] > 0.96 * len(drawn)
    counts = torch.bincount(torch.tensor([index for policy in drawn for index in policy.indices]), minlength=50)
    expected = float(counts.sum()) / 50
    assert float((counts - expected).square().sum()) / expected < 94  # χ² with 49 degrees: one in 10,000 is higher
    assert {len(draw_policy(0, number, 1).indices) for number in range(200)} == {1}


def test_policies_that_compute_the_same_are_one_candidate() -> None:
    singles = put_together(Policy((index,)) for index in range(len(CATALOGUE)))
    assert len(singles) == 28
    assert [one.drawn for one in singles if one.key == "none"] == [("28", "39")]
    (one,) = put_together([Policy((43, 39, 18)), Policy((24, 18)), Policy((43, 39, 18))])
    assert (one.policy, one.key, one.drawn) == ("43-39-18", "24-18", ("43-39-18", "24-18"))


def test_the_share_of_different_functions_is_as_known() -> None:
    found = draw_candidates(0, 1500)
    assert 1150 < len(found) < 1270
    assert len({one.key for one in found}) == len(found)
    assert len({function_of(draw_policy(0, number)) for number in range(1500)}) == len(found)
