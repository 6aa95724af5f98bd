"""Pruning and top-k: which entries stay."""

import pytest
import torch

from gradveil.defences import parse_defence
from gradveil.rng import generator
from gradveil.types import Update
from tests.defences.released import error, flat, release, update


@pytest.mark.parametrize(
    "from_weak_to_strong",
    [["prune:0", "prune:10", "prune:70", "prune:95", "prune:99"], ["topk:100", "topk:50", "topk:10", "topk:1"]],
    ids=lambda texts: texts[1],
)
def test_stronger_is_further_from_the_truth(from_weak_to_strong: list[str]) -> None:
    errors = [error(text) for text in from_weak_to_strong]
    assert errors == sorted(errors)
    assert errors[-1] > errors[0]


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
