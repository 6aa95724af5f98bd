"""Release and capture: what clients of an arm release, beside the truth that only the audit keeps."""

from collections.abc import Sequence
from dataclasses import dataclass

from gradveil.client import Client, Step, Weights
from gradveil.defences import Arm, build_defended
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.rounds import Captured, Round, aggregate, find_truths
from gradveil.types import Batch, LocalTraining, Place


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
            truths += find_truths(share.places, share.batch, watched)
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
