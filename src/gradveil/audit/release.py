"""Release and capture: what clients of an arm release, beside the truth that only the audit keeps."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from gradveil.client import Client, Step, Weights
from gradveil.defences import Arm, build_defended
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.rounds import Captured, Round, Truth, aggregate
from gradveil.types import Batch, LocalTraining, Place, to_pixels


@dataclass(frozen=True, eq=False)
class Share:
    """The images of one client, uint8, and their positions in the test split."""

    places: tuple[int, ...]
    batch: Batch


@dataclass(frozen=True, eq=False)
class Scene:
    """What clients work with under one arm in one phase, and what they let the attacker know.

    `others` are images of the clients that are not attacked; a defence that mixes images takes from them.
    """

    spec: ModelSpec
    weights: Weights
    arm: Arm
    phase: str
    local: LocalTraining
    others: Batch | None
    share_labels: bool
    told: bool
    seed: int

    def capture(self, shares: Sequence[Share], device: Place) -> Captured:
        """Let the clients release their updates, aggregated if there are several."""
        client = self.make_client(device)
        updates, truths = [], []
        for share in shares:
            watched: list[Step] = []
            update = client.update(
                self.weights,
                share.batch,
                self.arm.defences,
                # The same for every phase and attack, so that T(x) is the same picture in all of them.
                generator(self.seed, "draw", self.arm.name, share.places[0]),
                share_labels=self.share_labels,
                watch=watched.append,
            )
            updates.append(update)
            truths += find_truths(share, watched)
        return Captured(
            Round(
                self.spec,
                tuple(one for one in self.arm.defences if "model" in one.hooks),
                self.weights,
                aggregate(updates),
                self.arm.defences if self.told else (),
                len(shares),
                self.phase,
                shares[0].places[0],
            ),
            tuple(truths),
        )

    def make_client(self, device: Place) -> Client:
        return Client(build_defended(self.spec, self.arm.defences, self.seed).to(device), self.local, self.others)


def find_truths(share: Share, steps: Sequence[Step]) -> list[Truth]:
    """Find what the model was fed for each image of a client; one that no step drew was fed as it is."""
    first: dict[int, tuple[Tensor, int]] = {}
    for step in steps:
        pixels = step.fed.pixels().cpu()
        for row, place in enumerate(step.places.tolist()):
            first.setdefault(place, (pixels[row : row + 1], int(step.fed.labels[row])))
    truths = []
    for row, image in enumerate(share.places):
        original, label = to_pixels(share.batch.images[row : row + 1]), int(share.batch.labels[row])
        transformed, fed_label = first.get(row, (original, label))
        truths.append(Truth(image, label, original, transformed, fed_label))
    return truths
