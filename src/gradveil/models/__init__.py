"""Models by name, and a person's own."""

from gradveil.models.base import Normalise
from gradveil.models.convnet import ConvNet
from gradveil.models.lenet import LeNet
from gradveil.models.own import Factory, import_factory
from gradveil.models.registry import MODELS, ModelSpec, build, factory

__all__ = ["MODELS", "ConvNet", "Factory", "LeNet", "ModelSpec", "Normalise", "build", "factory", "import_factory"]
