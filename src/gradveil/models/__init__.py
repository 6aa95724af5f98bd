"""Models by name."""

from gradveil.models.base import Normalise
from gradveil.models.convnet import ConvNet
from gradveil.models.lenet import LeNet
from gradveil.models.registry import MODELS, Factory, ModelSpec, build, factory

__all__ = ["MODELS", "ConvNet", "Factory", "LeNet", "ModelSpec", "Normalise", "build", "factory"]
