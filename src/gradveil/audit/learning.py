"""Whether the attacked models have learnt anything: what is called trained should be."""

import math
from collections.abc import Mapping

DOUBT = 3.0
"""How many standard deviations above the share of the largest class an accuracy must lie to be called learnt."""


def find_unlearnt(accuracies: Mapping[str, float], chance: float, tested: int) -> tuple[str, ...]:
    """Say of which arms the accuracy is no better than chance: their later phases show nothing of a trained model."""
    limit = chance + DOUBT * math.sqrt(chance * (1 - chance) / tested)
    return tuple(
        f"{arm}: after training the model classifies {accuracy:.0%} of {tested} test images, where always naming the "
        f"largest class gives {chance:.0%}: it has learnt next to nothing, so its later phases do not speak of a "
        "trained model; train longer with --epochs"
        for arm, accuracy in accuracies.items()
        if accuracy <= limit
    )


def describe_given(accuracy: float, chance: float, tested: int) -> str:
    """Say how good given weights are on the test images."""
    limit = chance + DOUBT * math.sqrt(chance * (1 - chance) / tested)
    told = f"the given weights classify {accuracy:.0%} of {tested} test images; the largest class has {chance:.0%}"
    if accuracy > limit:
        return told
    return f"{told}: is this the data that they were trained on, and does the model take pixels from 0 to 1?"
