"""Independent component analysis."""

import torch

from gradveil.attacks.independent_components import find_components, whiten
from gradveil.rng import generator


def test_sources_are_told_apart_up_to_order_sign_and_length() -> None:
    source = generator(1)
    sources = torch.rand(4, 2000, generator=source, dtype=torch.float64).log()
    mixing = torch.randn(4, 4, generator=source, dtype=torch.float64)
    mixtures = mixing @ sources
    found = find_components(mixtures, source) @ mixtures
    alike = torch.corrcoef(torch.cat([found, sources]))[:4, 4:].abs()
    assert float(alike.amax(0).min()) > 0.99
    assert sorted(alike.argmax(1).tolist()) == [0, 1, 2, 3]


def test_what_is_whitened_is_decorrelated() -> None:
    rows = torch.randn(3, 500, generator=generator(2), dtype=torch.float64).cumsum(0)
    centred = rows - rows.mean(1, keepdim=True)
    white = whiten(centred) @ centred
    torch.testing.assert_close(white @ white.T / 500, torch.eye(3, dtype=torch.float64))
