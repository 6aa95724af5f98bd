"""Enough training for a small data set: recipes are made for thousands of images."""

import math
from dataclasses import replace

from gradveil.training.settings import TrainingSettings

LEAST_IMAGES = 1000
LEAST_STEPS = 100


def train_enough(settings: TrainingSettings, images: int) -> TrainingSettings:
    """Raise the share of the images to 1,000 of them, or all, and then the epochs to 100 steps."""
    fraction = max(settings.fraction, min(1.0, LEAST_IMAGES / images))
    wider = replace(settings, fraction=fraction)
    return replace(wider, epochs=max(settings.epochs, math.ceil(LEAST_STEPS / wider.steps_per_epoch(images))))
