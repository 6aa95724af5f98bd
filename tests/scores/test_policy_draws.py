"""The draw of an image belongs to the function and the image alone."""

import pytest
import torch

from gradveil import rng
from gradveil.scores import function_of, simplify
from gradveil.scores.policy_draws import transform_images
from gradveil.transforms import Policy, PolicySet, parse_policy

IMAGES = torch.randint(256, (6, 1, 12, 12), generator=rng.generator(0, "images"), dtype=torch.uint8)


@pytest.mark.parametrize(
    ("first", "second"),
    [("43-18", "24-18"), ("43-39-18", "48-18"), ("39", "none"), ("3-1+43-18", "3-1+42-18"), ("wide/43", "wide/24")],
)
def test_the_same_function_is_the_same_policy(first: str, second: str) -> None:
    one, other = parse_policy(first), parse_policy(second)
    assert simplify(one) == simplify(other)
    assert function_of(one) == function_of(other)
    assert torch.equal(
        transform_images(one, IMAGES, range(6), 5, "test"), transform_images(other, IMAGES, range(6), 5, "test")
    )


@pytest.mark.parametrize(("first", "second"), [("18-43", "43-18"), ("1", "wide/1"), ("3+43", "43+3"), ("1", "1-1")])
def test_another_function_has_another_name(first: str, second: str) -> None:
    assert function_of(parse_policy(first)) != function_of(parse_policy(second))


def test_every_single_policy_keeps_its_function() -> None:
    for index in range(50):
        policy = Policy((index,))
        assert simplify(policy).policies[0].function == policy.function


def test_an_image_has_its_own_draw() -> None:
    policy = parse_policy("3-1-7+43-18-18")
    whole = transform_images(policy, IMAGES, range(6), 0, "test")
    some = transform_images(policy, IMAGES, [4, 1], 0, "test")
    assert torch.equal(some, whole[[4, 1]])
    assert not torch.equal(whole, transform_images(policy, IMAGES, range(6), 1, "test"))
    assert not torch.equal(whole, transform_images(policy, IMAGES, range(6), 0, "other"))


def test_a_draw_is_one_of_the_policy() -> None:
    policy = PolicySet((Policy((3,)),))
    possible = [policy.apply(IMAGES[:1], policy.draws()[number]) for number in range(2)]
    found = transform_images(policy, IMAGES[:1].repeat(30, 1, 1, 1), range(30), 0, "test")
    kinds = {next(number for number, one in enumerate(possible) if torch.equal(image, one[0])) for image in found}
    assert kinds == {0, 1}
