"""Canaries: readable cards that clients hold among their images; can the text be read from what was rebuilt?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from gradveil.audit.cards import CHANCE, Card, draw_cards, read_card
from gradveil.audit.jobs import Attacked
from gradveil.audit.release import Share
from gradveil.types import Batch

Round = tuple[Share, ...]


@dataclass(frozen=True)
class CanaryReading:
    """What was read of one card under one arm, phase and attack; `decoded` is None if nothing was readable."""

    arm: str
    phase: str
    attack: str
    image: int
    text: str
    decoded: str | None

    @property
    def read(self) -> bool:
        return self.decoded == self.text

    def to_record(self) -> dict[str, Any]:
        """Return the reading as it stands in JSON."""
        return {**asdict(self), "read": self.read}


@dataclass(frozen=True, eq=False)
class Canaries:
    """The cards of an audit, and the rounds that they are attacked in.

    A card takes the place of the first image of a round, and its label; the other images of the round stay. `first` is
    the position of the first card, after all test images.
    """

    cards: Sequence[Card]
    rounds: Sequence[Round]
    first: int

    @classmethod
    def among(
        cls, rounds: Sequence[Round], count: int, shape: tuple[int, int, int], seed: int, first: int
    ) -> "Canaries":
        """Draw cards and put one into each of some rounds."""
        cards = draw_cards(count, shape, seed)
        changed = [put_in(rounds[place % len(rounds)], card, first + place) for place, card in enumerate(cards)]
        return cls(cards, changed, first)

    def read(self, key: tuple[str, str, str], attacked: Sequence[Attacked]) -> list[CanaryReading]:
        """Read the cards among what was rebuilt under one arm, phase and attack."""
        found = []
        for one in attacked:
            place = one.truth.image - self.first
            if place >= 0:
                result = one.reconstruction
                pictures = [guess[0] for guess in (result.images, result.transformed) if guess is not None]
                decoded = read_card(pictures) if result.status == "ok" else None
                found.append(CanaryReading(*key, place, self.cards[place].text, decoded))
        return found


def put_in(clients: Round, card: Card, place: int) -> Round:
    """Replace the first image of the first client."""
    share, *others = clients
    images = torch.cat([card.image[None], share.batch.images[1:]])
    return (Share((place, *share.places[1:]), Batch(images, share.batch.labels)), *others)


def chance_of_reading(images_per_round: int) -> float:
    """Bound how often a card is read by chance; the rebuilt images of a round are paired with the true ones first."""
    return min(1.0, images_per_round * CHANCE)
