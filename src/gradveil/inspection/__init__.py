"""Look at a model from someone else before training it: is it planted to give images away?"""

from gradveil.inspection.inspect import (
    LIMITS,
    MEASURES,
    Inspection,
    LayerFindings,
    Measure,
    choose_images,
    inspect_model,
)
from gradveil.inspection.isolation import Isolation, measure_isolation
from gradveil.inspection.weights import OddWeights, look_at_weights

__all__ = [
    "LIMITS",
    "MEASURES",
    "Inspection",
    "Isolation",
    "LayerFindings",
    "Measure",
    "OddWeights",
    "choose_images",
    "inspect_model",
    "look_at_weights",
    "measure_isolation",
]
