"""Priors, each against something known."""

import pytest
import torch

from gradveil.attacks import Priors, opponent_slope, variation_slope
from gradveil.attacks.priors import disagreement, energy, opponent_variation, pass_gap, total_variation
from gradveil.errors import SettingsError
from gradveil.rng import generator


def test_total_variation_counts_both_directions() -> None:
    stripes = torch.tensor([0.0, 1.0]).repeat(2, 2).view(1, 1, 1, 2, 4)
    assert float(total_variation(stripes)) == 1.0
    assert float(total_variation(stripes.transpose(-1, -2).contiguous())) == 1.0


def test_the_slope_of_the_total_variation_is_known() -> None:
    images = torch.randn(2, 3, 2, 5, 4, generator=generator(0), requires_grad=True)
    (expected,) = torch.autograd.grad(total_variation(images).sum(), images)
    torch.testing.assert_close(variation_slope(images.detach()), expected)


def test_opponent_colours_make_a_change_of_colour_cost_more_than_one_of_brightness() -> None:
    flat = torch.ones(1, 1, 3, 4, 4)
    brighter, redder = flat.clone(), flat.clone()
    brighter[..., 1:3, 1:3] = 2
    redder[:, :, 0, 1:3, 1:3] = 4  # three times the change, in one colour of three
    values = [float(opponent_variation(one) - opponent_variation(flat)) for one in (brighter, redder)]
    assert float(total_variation(brighter)) == pytest.approx(float(total_variation(redder)))
    assert values[1] > 2 * values[0] > 0


def test_the_border_is_held_to_the_mean_colour() -> None:
    flat = torch.full((1, 1, 1, 3, 3), 2.0)
    # Four of nine pixels have one neighbour beyond the border, one has two.
    assert float(opponent_variation(flat)) == pytest.approx((4 * 2 + 2 * 2**0.5) / 9, rel=1e-5)


def test_the_slope_of_the_opponent_variation_is_its_own() -> None:
    images = torch.randn(2, 1, 3, 5, 4, generator=generator(0), dtype=torch.float64)
    moved = images.clone()
    moved[0, 0, 1, 2, 2] += 1e-6
    measured = (opponent_variation(moved) - opponent_variation(images))[0] / 1e-6
    assert float(opponent_slope(images)[0, 0, 1, 2, 2]) == pytest.approx(float(measured), rel=1e-4)
    assert not opponent_slope(images).requires_grad


def test_disagreement_is_within_a_target() -> None:
    images = torch.tensor([0.0, 2.0, 7.0]).view(3, 1, 1, 1, 1)
    assert disagreement(images, torch.tensor([0, 0, 1])).tolist() == [1.0, 1.0, 0.0]


def test_energy_is_the_mean_square() -> None:
    images = torch.tensor([[1.0, 3.0], [0.0, 2.0]]).view(2, 1, 1, 1, 2)
    assert energy(images).tolist() == [5.0, 2.0]


@pytest.mark.parametrize(
    "change", [{"total_variation": -1.0}, {"last_variation": 0.1, "total_variation": 0.0}, {"energy": float("nan")}]
)
def test_weights_out_of_range_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        Priors(**change)  # type: ignore[arg-type]


def test_the_weight_of_the_variation_falls_in_equal_ratios() -> None:
    annealed = Priors(total_variation=1.0, last_variation=0.01)
    assert annealed.variation_weight(0, 10) == 1.0
    assert annealed.variation_weight(5, 10) == pytest.approx(0.1)
    assert Priors(total_variation=0.5).variation_weight(7, 10) == 0.5


def test_only_weights_beside_the_variation_count_as_further_priors() -> None:
    assert not Priors(total_variation=3.0).beyond_variation
    assert Priors(batch_norm=0.1).beyond_variation


def test_priors_stay_on_the_device() -> None:
    images = torch.zeros(2, 3, 1, 4, 4, device="meta")
    for values in (total_variation(images), energy(images), disagreement(images, torch.tensor([0, 1]))):
        assert values.is_meta
        assert values.shape == (2,)
    assert variation_slope(images).is_meta


def test_the_total_variation_can_be_left_out_and_the_rest_stays() -> None:
    left = Priors(total_variation=1.0, last_variation=0.3, relative=True, energy=0.5).without_variation()
    assert left.variation_weight(3, 10) == 0
    assert (left.energy, left.relative) == (0.5, True)


def test_passes_agree_if_they_use_the_same_images_in_any_order() -> None:
    images = torch.rand(1, 3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    labels, order = torch.tensor([[0, 0, 1]]), torch.tensor([2, 1, 0])
    twice, names = torch.cat([images, images[:, order]], 1), torch.cat([labels, labels[:, order]], 1)
    assert float(pass_gap(twice, names, 3)) < 1e-12
    assert float(pass_gap(torch.cat([images, 1 - images], 1), labels.repeat(1, 2), 3)) > 1e-3
    # The third pass is not complete and left out; a single one has nothing to agree with.
    assert float(pass_gap(torch.cat([twice, 9 * images[:, :1]], 1), torch.cat([names, labels[:, :1]], 1), 3)) < 1e-12
    assert float(pass_gap(images, labels, 3)) == 0
