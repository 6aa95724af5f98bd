"""The vision transformer."""

import torch
from torch import nn

from gradveil.models.vit import Attention, VisionTransformer
from gradveil.rng import generator

COLOUR = (0.5, 0.4, 0.3), (0.2, 0.2, 0.3)


def test_it_is_the_published_one_at_its_published_size() -> None:
    with torch.device("meta"):
        model = VisionTransformer((3, 224, 224), 1000, *COLOUR, patch=16)
    assert sum(parameter.numel() for parameter in model.parameters()) == 5_717_416


def test_patches_grow_with_the_image_and_edges_are_padded() -> None:
    for side, patch, tokens in ((32, 4, 64), (45, 4, 144), (96, 6, 256)):
        model = VisionTransformer((3, side, side), 10, *COLOUR, depth=1)
        assert model.embed.kernel_size == (patch, patch)
        assert model.position.shape[1] == tokens + 1
        assert model(torch.rand(2, 3, side, side)).shape == (2, 10)


def test_attention_is_what_torch_computes() -> None:
    tokens = torch.rand(2, 5, 12, generator=generator(0, "tokens"))
    ours = Attention(12, 3)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.project.weight,
            "in_proj_bias": ours.project.bias,
            "out_proj.weight": ours.merge.weight,
            "out_proj.bias": ours.merge.bias,
        }
    )
    torch.testing.assert_close(ours(tokens), theirs(tokens, tokens, tokens)[0])
