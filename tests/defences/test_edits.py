"""What a defence changed in a model, in words."""

import torch

from gradveil.defences import list_edits


def test_without_an_edit_nothing_is_listed() -> None:
    layer = torch.nn.Linear(2, 2)
    assert list_edits(layer, layer) == ()


def test_a_replaced_and_an_added_layer_are_named() -> None:
    before = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    after = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.GELU(), torch.nn.Dropout())
    assert list_edits(before, after) == ("ReLU → GELU: 1", "added Dropout: 2")
