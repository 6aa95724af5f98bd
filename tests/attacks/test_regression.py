"""Maps from features to pictures."""

import torch
from torch import Tensor

from gradveil.attacks.regression import Blend, LastColumns, Moments, Ridge, Stacked, choose, pair_ties, train_network
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
    best, score = choose([bad, good, Blend(good, bad, 0.5)], features, base, targets)
    assert best == 1
    assert score > 60


def test_a_map_of_the_last_columns_sees_nothing_else() -> None:
    features = draw(5, 4)
    found = LastColumns(2, Ridge(torch.eye(2)))(features)
    assert torch.equal(found, features[:, -2:])


def test_one_map_works_on_what_another_predicts() -> None:
    features = draw(5, 4)
    stacked = Stacked(Ridge(torch.eye(6)[:, :2]), 1, Ridge(torch.tensor([[1.0], [0.0], [10.0]])))
    torch.testing.assert_close(stacked(features), 3 * features[:, :1] + 10 * features[:, 5:])


def test_tied_examples_exchange_targets() -> None:
    features, ties = torch.eye(4), torch.tensor([0, 5, 5, 5])
    targets = torch.eye(4)[[1, 3, 1, 2]]
    paired = pair_ties(Ridge(torch.eye(4)), features, targets, ties)
    assert paired.argmax(1).tolist() == [1, 1, 2, 3]
    assert torch.equal(pair_ties(Ridge(torch.eye(4)), features, targets, torch.arange(4)), targets)


def test_a_network_learns_images_that_come_in_any_order() -> None:
    low, high = torch.zeros(200, 1), torch.ones(200, 1)
    order = torch.rand(200, 1, generator=generator(5)) < 0.5
    targets = torch.stack([torch.where(order, low, high), torch.where(order, high, low)], 1).flatten(0, 1)
    features, ties = torch.eye(2).repeat(200, 1), torch.arange(200).repeat_interleave(2)
    network = train_network(features, targets, 16, 40, generator(6), rate=1e-2, ties=ties)
    assert sorted(round(float(value)) for value in network(torch.eye(2))) == [0, 1]
