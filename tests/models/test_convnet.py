"""The ConvNet of the papers."""

from torch import nn

from gradveil.models import ConvNet


def test_channels_of_the_paper_and_of_its_replication() -> None:
    for late in (2, 3):
        model = ConvNet((3, 32, 32), 100, (0.5,) * 3, (0.2,) * 3, width=8, late=late)
        convolutions = [module for module in model.body if isinstance(module, nn.Conv2d)]
        assert [module.out_channels for module in convolutions] == [8, 16, 16, 32, 32, 32, *[32] * late]
        pools = [place for place, module in enumerate(model.body) if isinstance(module, nn.MaxPool2d)]
        assert pools == [18, 18 + 1 + 3 * late]
        assert model.head.in_features == 32 * 3 * 3
