"""The chance floor comes from training images alone, and is one guess for all."""

import pytest
import torch

from gradveil.metrics import choose_floor, make_guesses, psnr


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    images = torch.rand(30, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(30) % 3
    images += labels.view(-1, 1, 1, 1) * 0.5
    return [(images[:17], labels[:17]), (images[17:], labels[17:])]


def test_guesses_are_means() -> None:
    images = torch.cat([part[0] for part in batches()])
    labels = torch.cat([part[1] for part in batches()])
    guesses = make_guesses(batches(), 4, labels_known=True)
    assert torch.allclose(guesses["mean colour"], images.mean().expand(4, 1, 6, 6))
    assert torch.allclose(guesses["mean image"], images.mean(0).expand(4, 1, 6, 6))
    assert torch.allclose(guesses["class mean"][2], images[labels == 2].mean(0))
    # No image of class 3 was seen: the mean image stands in.
    assert torch.allclose(guesses["class mean"][3], images.mean(0))


def test_class_means_need_labels() -> None:
    assert set(make_guesses(batches(), 3, labels_known=False)) == {"mean colour", "mean image"}


def test_the_best_on_average_is_chosen() -> None:
    images, labels = batches()[0]
    guesses = make_guesses(batches(), 3, labels_known=True)
    floor = choose_floor(guesses, images, labels, psnr)
    means = {kind: float(psnr(guess[labels], images).mean()) for kind, guess in guesses.items()}
    assert floor.kind == max(means, key=means.__getitem__) == "class mean"
    assert torch.equal(floor.guess(labels), guesses["class mean"][labels])


def test_a_large_mean_is_exact() -> None:
    # A float32 running sum of this many equal values is off in the third decimal.
    chunk = torch.full((2000, 1, 2, 2), 0.1), torch.zeros(2000, dtype=torch.int64)
    guesses = make_guesses([chunk] * 100, 1, labels_known=False)
    assert float(guesses["mean colour"][0, 0, 0, 0]) == pytest.approx(0.1, abs=1e-7)


def test_no_images_no_floor() -> None:
    with pytest.raises(ValueError, match="at least one"):
        make_guesses([], 2, labels_known=True)
