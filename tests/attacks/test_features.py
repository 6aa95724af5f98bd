"""Updates as vectors."""

import torch

from gradveil.attacks.features import WIDTH, Features, read_rows
from gradveil.attacks.rehearsal import Rehearsal
from gradveil.rng import generator
from gradveil.types import ONE_GRADIENT
from tests.attacks.scenes import make_task, pictures


def fit(size: int = 1, with_norms: bool = False) -> tuple[Features, dict[str, torch.Tensor], torch.Tensor]:
    task, batch = make_task(), pictures()
    released = Rehearsal(task, ONE_GRADIENT, batch, size).release(batch, generator(0))
    names, labels = list(released.tensors), batch.labels.view(-1, size)
    features = Features.fit(task, names, 0, [(released.tensors, labels)], with_norms)
    return features, released.tensors, labels


def test_features_are_standardised_and_bounded() -> None:
    features, tensors, labels = fit()
    found = features(tensors, labels)
    assert found.shape[0] == 16
    assert WIDTH < found.shape[1] <= 4 * WIDTH
    assert float(found.mean(0).abs().max()) < 1e-3
    assert float(found.abs().max()) <= 10


def test_the_length_of_an_update_shows_in_the_norms_alone() -> None:
    features, tensors, labels = fit(with_norms=True)
    longer = {name: 1.5 * tensor for name, tensor in tensors.items()}
    ours, theirs = features(longer, labels), features(tensors, labels)
    telling = features.telling
    torch.testing.assert_close(ours[:, :-telling], theirs[:, :-telling], rtol=1e-2, atol=1e-2)
    norms = slice(-telling, -features.classes)
    assert (ours[:, norms] > theirs[:, norms]).all()
    assert torch.equal(ours[:, -features.classes :], theirs[:, -features.classes :])


def test_an_empty_update_has_finite_features() -> None:
    features, tensors, labels = fit()
    empty = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    assert bool(features(empty, labels).isfinite().all())


def test_what_entered_a_linear_layer_is_read_off() -> None:
    slopes, inputs = torch.randn(3, 5, generator=generator(0)), torch.randn(3, 7, generator=generator(1))
    weight = slopes[:, :, None] * inputs[:, None]
    torch.testing.assert_close(read_rows(weight, slopes), inputs)


def test_the_images_of_a_batch_have_features_of_their_own() -> None:
    features, tensors, labels = fit(size=4)
    found = features(tensors, labels)
    assert found.shape[0] == 16
    assert features.tail == 2 * 10 + 4
    assert bool(found.isfinite().all())
    shared = found.view(4, 4, -1)
    assert torch.equal(shared[:, 0, :WIDTH], shared[:, 3, :WIDTH])
    assert not torch.equal(shared[:, 0, WIDTH : -features.tail], shared[:, 3, WIDTH : -features.tail])


def test_a_batch_s_reads_come_from_the_rows_of_the_labels() -> None:
    features, _, _ = fit(size=2)
    weight, bias = torch.randn(1, 10, 7, generator=generator(0)), torch.randn(1, 10, generator=generator(1))
    read = features.read(weight, bias, torch.tensor([[3, 8]]))
    torch.testing.assert_close(read, weight[0, [3, 8]] / bias[0, [3, 8], None])


def test_a_sketch_keeps_lengths_roughly() -> None:
    features, _, _ = fit()
    long = torch.randn(20, 10 * WIDTH, generator=generator(2))
    lengths = [torch.linalg.vector_norm(rows, dim=1) for rows in (features.sketch(long), long)]
    torch.testing.assert_close(*lengths, rtol=0.1, atol=0)
