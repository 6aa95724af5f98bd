"""The participants of a collaborative training: who has which images, and what each does in a round."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from gradveil.client import Client, Step, Weights
from gradveil.data import DataSet, ImageSet, parse_partition, partition_images
from gradveil.defences import Arm, build_defended, parse_arm
from gradveil.federated.settings import FederatedSettings
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.rounds import Round, Truth, find_truths
from gradveil.types import Batch, LocalTraining, Update

TEST_SHARE = 0.2
TRAINING_COST = 3
"""A training step costs about as much as three passes forward."""


@dataclass(frozen=True, eq=False)
class ClientWork:
    """What one participant released in a round; `truths` and the losses stay with it."""

    update: Update
    truths: tuple[Truth, ...]
    loss: float


class Participants:
    """All participants of a run, as they would be on machines of their own: each uses its own share only."""

    def __init__(self, settings: FederatedSettings, data: DataSet) -> None:
        self.settings, self.data = settings, data
        self.arm: Arm = parse_arm(settings.arm, settings.own)
        self.spec = ModelSpec(settings.model, data.shape, data.classes, data.mean, data.std)

    @cached_property
    def shares(self) -> list[Tensor]:
        """The positions of every participant's images in the training split."""
        settings = self.settings
        source = generator(settings.seed, "federated", "partition")
        return partition_images(self.data.train.labels, settings.clients, parse_partition(settings.partition), source)

    @cached_property
    def model(self) -> nn.Module:
        return self.build_model()

    def build_model(self) -> nn.Module:
        """Build the model that everyone starts from; the same as in centralised training with this seed."""
        return build_defended(self.spec, self.arm.defences, self.settings.seed)

    def share(self, client: int) -> ImageSet:
        return self.data.train.take(self.shares[client])

    def first_weights(self) -> Weights:
        """Return the weights that everyone starts from."""
        return self.build_model().state_dict()

    def client_round(self, client: int, number: int, rounds: int, weights: Weights) -> ClientWork:
        """Do the work of one participant in round `number` of `rounds`, counted from 1."""
        settings = self.settings
        places = self.places(client, number)
        chosen = self.data.train.take(places)
        steps: list[Step] = []
        update = Client(self.model, self.local(number, rounds, client), self.others(client, places)).update(
            weights,
            chosen.batch(),
            self.arm.defences,
            generator(settings.seed, "federated", "round", number, client),
            share_labels=False,
            watch=steps.append,
        )
        losses = [step.loss for step in steps]
        truths = find_truths(places.tolist(), chosen.batch(), steps)
        return ClientWork(update, tuple(truths), sum(losses) / max(1, len(losses)))

    def places(self, client: int, number: int) -> Tensor:
        """Choose the images of a round: the next part of a shuffled share, or the whole share for several passes."""
        share = self.shares[client]
        if not self.is_drawn(client):
            return share
        size = self.count_images(client)
        epoch, step = divmod(number - 1, max(1, len(share) // size))
        source = generator(self.settings.seed, "federated", "shuffle", client, epoch)
        return share[torch.randperm(len(share), generator=source)[step * size : (step + 1) * size]]

    def count_images(self, client: int) -> int:
        """Count the images that a participant works on in a round: at most its share."""
        share = len(self.shares[client])
        return min(share, self.count_uses(share)) if self.is_drawn(client) else share

    def is_drawn(self, client: int) -> bool:
        """Tell whether a round draws its images in the order of their use, and uses each once.

        Otherwise the client takes its whole share: for several passes, in its own order if it does not shuffle, and
        under DP-SGD, whose accountant supposes that every image of the share may be drawn at every step.
        """
        works, share = self.settings.works, len(self.shares[client])
        if not works.takes_steps:
            return True
        uses = self.count_uses(share)
        is_private = any(defence.poisson for defence in self.arm.defences)
        return not is_private and (uses < share or (uses == share and works.shuffle))

    def count_uses(self, share: int) -> int:
        """Count the images that a client with a share of so many works on in a round, each as often as it is used."""
        works = self.settings.works
        if not works.takes_steps:
            return self.settings.client_batch
        return (works.steps or 0) * min(works.size_of(share), share) if works.epochs is None else works.epochs * share

    def local(self, number: int, rounds: int, client: int) -> LocalTraining:
        """Return how a client works in a round: with FedAvg the rate falls linearly to zero.

        A client with fewer images than a local batch takes all of them at every step. Images that are drawn in the
        order of their use are not shuffled once more.
        """
        works = self.settings.works
        if self.settings.algorithm == "fedsgd":
            return works
        share = len(self.shares[client])
        return replace(
            works,
            learning_rate=works.learning_rate * (1 - (number - 1) / rounds),
            batch_size=min(works.size_of(share), share),
            shuffle=works.shuffle and not self.is_drawn(client),
        )

    def is_tested(self, number: int, rounds: int) -> bool:
        """Tell whether the weights are tested after round `number`: always after the last one."""
        return number % self.test_every == 0 or number == rounds

    @property
    def test_every(self) -> int:
        """Rounds from one test to the next, so that tests take at most a fifth of the time."""
        images = sum(min(len(share), self.count_uses(len(share))) for share in self.shares)
        return max(1, round(len(self.data.test) / (TEST_SHARE * TRAINING_COST * images)))

    def others(self, client: int, places: Tensor) -> Batch:
        """Return the images that a defence may mix with: those not in the round, or all if these are too few."""
        share = self.shares[client]
        left = share[~torch.isin(share, places)]
        companions = max((defence.companions for defence in self.arm.defences), default=0)
        return self.data.train.take(left if len(left) >= max(1, companions) else share).batch()

    def round_of(self, client: int, number: int, weights: Weights, update: Update) -> Round:
        """Put a released update together with all that the server knows; it knows the defences, not their draws."""
        changing = tuple(defence for defence in self.arm.defences if "model" in defence.hooks)
        return Round(
            self.spec, changing, copy_tensors(weights), update, self.arm.defences, 1, f"round-{number}", client
        )


def copy_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}
