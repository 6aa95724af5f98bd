"""Noise on an update: its deviation, and that more of it hides more."""

import math

import pytest

from tests.defences.released import error, flat, release, update


@pytest.mark.parametrize(
    "from_weak_to_strong",
    [
        ["gaussian:0", "gaussian:1e-3", "gaussian:1e-2", "gaussian:1"],
        ["laplacian:0", "laplacian:1e-3", "laplacian:1e-2", "laplacian:1"],
    ],
    ids=lambda texts: texts[1],
)
def test_stronger_is_further_from_the_truth(from_weak_to_strong: list[str]) -> None:
    errors = [error(text) for text in from_weak_to_strong]
    assert errors == sorted(errors)
    assert errors[-1] > errors[0]


def test_noise_has_the_deviation_it_names() -> None:
    plain = flat(dict(update().tensors))
    assert float((flat(release("gaussian:0.5")) - plain).std()) == pytest.approx(0.5, rel=0.05)
    assert float((flat(release("laplacian:0.5")) - plain).std()) == pytest.approx(0.5 * math.sqrt(2), rel=0.08)
