"""A stronger setting never releases more: noise variance, kept entries, steps, length."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from gradveil.defences import parse_arm, parse_defence
from gradveil.defences.edits import list_edits
from gradveil.errors import InputError
from gradveil.rng import generator
from gradveil.types import Batch, Update


def update() -> Update:
    source = generator(0)
    shapes = {"first": (40, 30), "second": (500,), "third": (2, 2)}
    return Update({name: torch.randn(shape, generator=source) * 0.1 for name, shape in shapes.items()}, 1)


def release(text: str, seed: int = 0) -> dict[str, Tensor]:
    return dict(parse_defence(text).release(update(), generator(seed)).tensors)


def flat(tensors: dict[str, Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


def error(text: str) -> float:
    return float((flat(release(text)) - flat(dict(update().tensors))).square().mean())


@pytest.mark.parametrize(
    "from_weak_to_strong",
    [
        ["gaussian:0", "gaussian:1e-3", "gaussian:1e-2", "gaussian:1"],
        ["laplacian:0", "laplacian:1e-3", "laplacian:1e-2", "laplacian:1"],
        ["prune:0", "prune:10", "prune:70", "prune:95", "prune:99"],
        ["topk:100", "topk:50", "topk:10", "topk:1"],
        ["clip:100", "clip:1", "clip:0.1"],
        ["quantise:16", "quantise:8", "quantise:4", "quantise:2"],
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


def test_pruning_is_per_tensor_and_drops_the_smallest() -> None:
    for name, tensor in release("prune:70").items():
        before = update().tensors[name]
        gone = tensor == 0
        assert int(gone.sum()) == int(0.7 * tensor.numel())
        assert before[gone].abs().max() <= before[~gone].abs().min()
        assert torch.equal(tensor[~gone], before[~gone])


def test_equal_magnitudes_are_pruned_by_count() -> None:
    same = Update({"weight": torch.ones(10)}, 1)
    assert int((parse_defence("prune:30").release(same, generator(0)).tensors["weight"] == 0).sum()) == 3


def test_topk_is_over_the_whole_vector() -> None:
    released, before = flat(release("topk:10")), flat(dict(update().tensors))
    kept = released != 0
    assert int(kept.sum()) == round(0.1 * len(before))
    assert before[kept].abs().min() >= before[~kept].abs().max()
    small = Update({"large": torch.full((5,), 9.0), "small": torch.ones(5)}, 1)
    assert not parse_defence("topk:50").release(small, generator(0)).tensors["small"].any()


def test_clipping_bounds_the_norm_and_keeps_the_direction() -> None:
    released, before = flat(release("clip:0.5")), flat(dict(update().tensors))
    assert float(released.norm()) == pytest.approx(0.5, rel=1e-5)
    assert float(torch.cosine_similarity(released, before, dim=0)) == pytest.approx(1, abs=1e-6)


def test_sign_leaves_one_magnitude_for_each_tensor() -> None:
    for name, tensor in release("sign").items():
        assert len(tensor.abs().unique()) == 1  # type: ignore[no-untyped-call]
        assert torch.equal(tensor.sign(), update().tensors[name].sign())


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_quantised_entries_take_few_values_and_are_right_on_average(bits: int) -> None:
    before = update().tensors["second"]
    draws = torch.stack([release(f"quantise:{bits}", seed)["second"] for seed in range(60)])
    step = float(before.abs().max()) / (2 ** (bits - 1) - 1)
    assert len((draws / step).round().unique()) <= 2**bits - 1
    assert float((draws - before).abs().max()) <= step * 1.001
    assert float((draws.mean(0) - before).abs().max()) < 5 * step / (2 * math.sqrt(60))


def test_zeros_pass_through_everything() -> None:
    empty = Update({"weight": torch.zeros(6)}, 1)
    for text in ("prune:50", "topk:10", "clip:1", "sign", "quantise:4"):
        assert not parse_defence(text).release(empty, generator(0)).tensors["weight"].any()


@dataclass(frozen=True)
class Bad:
    text: str
    says: str


@pytest.mark.parametrize(
    "bad",
    [
        Bad("gaussian:-1", "0 or more"),
        Bad("gaussian:nan", "0 or more"),
        Bad("gaussian:inf", "0 or more"),
        Bad("gaussian", "lacks scale"),
        Bad("gaussian:", "lacks scale"),
        Bad("gaussian:much", "not a number"),
        Bad("gaussian:1:2", "cannot be used"),
        Bad("gaussian:scale=1:scale=2", "cannot be used"),
        Bad("gaussian:sigma=1", "cannot be used"),
        Bad("laplacian:-0.1", "0 or more"),
        Bad("prune:150", "0 ≤ P < 100"),
        Bad("prune:100", "0 ≤ P < 100"),
        Bad("prune:nan", "0 ≤ P < 100"),
        Bad("topk:0", "0 < P ≤ 100"),
        Bad("topk:101", "0 < P ≤ 100"),
        Bad("clip:0", "above 0"),
        Bad("clip:-1", "above 0"),
        Bad("sign:3", "takes no parameters"),
        Bad("quantise:1", "2 to 16"),
        Bad("quantise:2.5", "not a whole number"),
        Bad("quantise:33", "2 to 16"),
        Bad("mixup:0", "0 < A ≤ 100"),
        Bad("instahide:1", "2 ≤ K ≤ 16"),
        Bad("dpsgd", "lacks noise and clip"),
        Bad("dpsgd:1.1", "cannot be used"),
        Bad("dpsgd:noise=1.1", "lacks clip"),
        Bad("dpsgd:noise=-1:clip=1", "S ≥ 0"),
        Bad("dpsgd:noise=nan:clip=1", "S ≥ 0"),
        Bad("dpsgd:noise=1:clip=0", "C > 0"),
        Bad("dpsgd:noise=1:clip=1:delta=1", "0 < D < 1"),
        Bad("soteria:100", "0 ≤ P < 100"),
        Bad("soteria:-1", "0 ≤ P < 100"),
        Bad("precode:width=0", "1 ≤ K ≤ 4096"),
        Bad("precode:weight=nan", "0 ≤ B ≤ 1"),
        Bad("random-policy", "names no seed"),
        Bad("random-policy:-1", "names no seed"),
        Bad("crop-flip:4", "no parameters"),
        Bad("gauss:1", "choose from"),
        Bad("soteria:40,dpsgd:noise=1:clip=1", "name dpsgd first"),
        Bad("gaussian:1,none", "choose from"),
    ],
    ids=lambda bad: bad.text,
)
def test_a_bad_strength_is_refused_with_the_range(bad: Bad) -> None:
    with pytest.raises(InputError) as found:
        parse_arm(bad.text)
    assert bad.says in str(found.value)
    assert "\n" not in str(found.value)


def test_keys_may_name_the_only_parameter() -> None:
    assert parse_defence("gaussian:scale=1e-3") == parse_defence("gaussian:0.001")
    assert str(parse_defence("dpsgd:clip=1:noise=1.1")) == "dpsgd:noise=1.1:clip=1"
    assert str(parse_defence("gaussian:0.0012345678")) == "gaussian:0.0012345678"


def test_a_random_policy_is_drawn_by_its_seed() -> None:
    ten = {str(parse_defence(f"random-policy:{seed}")) for seed in range(10)}
    assert len(ten) == 10
    assert all(text.count("-") == 2 for text in ten)


def test_mixing_is_a_convex_mixture_and_draws_labels_by_share() -> None:
    dark, bright = torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 2)
    many = Batch(torch.cat([dark, bright] * 500), torch.tensor([0, 1] * 500))
    pair = parse_defence("mixup").batch(Batch(torch.cat([dark, bright]), torch.tensor([0, 1])), generator(3))
    assert float(pair.images[0].max()) <= 0.5 <= float(pair.images[1].min())
    mixed = parse_defence("mixup").batch(many, generator(0))
    assert float(mixed.images.mean()) == pytest.approx(float(mixed.labels.double().mean()), abs=0.06)


def test_instahide_flips_about_half_of_the_pixels() -> None:
    dark = Batch(torch.zeros(8, 1, 16, 16), torch.zeros(8, dtype=torch.int64))
    hidden = parse_defence("instahide").batch(dark, generator(0)).images
    assert set(hidden.unique().tolist()) == {0.0, 1.0}  # type: ignore[no-untyped-call]
    assert float(hidden.mean()) == pytest.approx(0.5, abs=0.06)


def test_without_an_edit_nothing_is_listed() -> None:
    layer = torch.nn.Linear(2, 2)
    assert list_edits(layer, layer) == ()
