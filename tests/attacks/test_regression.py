"""Maps from features to pictures."""

import torch
from torch import Tensor

from gradveil.attacks.regression import LastColumns, Moments, Ridge, choose, train_network
from gradveil.rng import generator


def draw(count: int, seed: int) -> Tensor:
    return torch.randn(count, 6, generator=generator(seed))


def test_ridge_finds_a_linear_map_part_by_part() -> None:
    matrix, moments = torch.randn(6, 4, generator=generator(0)), Moments()
    for part in torch.split(draw(300, 1), 50):
        moments.add(part, part @ matrix)
    assert moments.count == 300
    torch.testing.assert_close(moments.solve(1e-6).matrix, matrix, rtol=1e-3, atol=1e-3)
    assert float(moments.solve(10.0).matrix.norm()) < 0.5 * float(matrix.norm())


def test_a_network_learns_what_no_linear_map_can() -> None:
    features, unseen = draw(2000, 1), draw(200, 2)
    network = train_network(features, features.abs(), 32, 20, generator(0), rate=1e-2)
    error = (network(unseen) - unseen.abs()).square().mean()
    assert float(error) < 0.2 * float(unseen.abs().var())
    same = train_network(features, features.abs(), 32, 20, generator(0), rate=1e-2)
    assert torch.equal(network(unseen), same(unseen))


def test_the_map_with_the_best_pictures_is_kept() -> None:
    features = draw(50, 3)
    targets = (0.5 + 0.1 * features).clamp(0, 1)
    base = torch.full_like(targets, 0.5)
    good, bad = Ridge(0.1 * torch.eye(6)), Ridge(-0.1 * torch.eye(6))
    best, score = choose([bad, good], features, base, targets)
    assert best is good
    assert score > 60


def test_a_map_of_the_last_columns_sees_nothing_else() -> None:
    features = draw(5, 4)
    found = LastColumns(2, Ridge(torch.eye(2)))(features)
    assert torch.equal(found, features[:, -2:])
