"""What a member's picture will score, forecast from what members did in a rehearsal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from gradveil.attacks.choices import MemberResult, closeness
from gradveil.attacks.ranking import transformed_of

Target = Literal["fed", "original"]
OWN = 30.0
"""How firmly a member's slope is held to that of all: as by so many squared decibels of the losses' spread."""
SHARED = 3.0
"""The same for what all members share, which is held to 0."""
CERTAIN = 2.0
"""How many standard errors a gain must exceed before another picture than that of T(x) is taken for x."""


@dataclass(frozen=True, eq=False)
class Tried:
    """What a member did in one rehearsal: its result and its scores in dB.

    `fed` is that of its picture of T(x) at T(x), `original` that of its picture of x at x, aligned, and `pictured` that
    of its picture of T(x) at x, aligned.
    """

    one: MemberResult
    fed: float
    original: float
    pictured: float

    def score(self, target: Target) -> float:
        return self.fed if target == "fed" else self.original


@dataclass(frozen=True)
class Forecast:
    """Forecast scores, in dB, from losses, in dB: how well the image is matched at best, and how far behind one is.

    An image that is matched well is easy, for one member more than for another (`bases`, `slopes`). What it says that
    one member matches an image better than another, all share (`behind`): nothing if the loss is that of noise.
    """

    bases: Mapping[str, float]
    slopes: Mapping[str, float]
    behind: float

    def predict(self, one: MemberResult, best: float) -> float:
        """Forecast the score of a result on an image whose best match is this close."""
        return self.bases[one.member] + self.slopes[one.member] * best + self.behind * (closeness(one.loss) - best)


def best_match(results: Sequence[MemberResult]) -> float:
    """Return how close the best match of an image is."""
    return max(closeness(one.loss) for one in results if one.is_sound)


def fit(tried: Sequence[Sequence[Tried]], target: Target) -> Forecast:
    """Fit the forecast to rehearsed images by least squares, with slopes that are held together."""
    names = list(dict.fromkeys(part.one.member for own in tried for part in own))
    rows, scores = [], []
    for own in tried:
        best = best_match([part.one for part in own])
        for part in own:
            member = torch.eye(len(names), dtype=torch.float64)[names.index(part.one.member)]
            shared = torch.tensor([best, closeness(part.one.loss) - best], dtype=torch.float64)
            rows.append(torch.cat([member, best * member, shared]))
            scores.append(part.score(target))
    seen, wanted = torch.stack(rows), torch.tensor(scores, dtype=torch.float64)
    penalty = torch.tensor([1e-3] * len(names) + [OWN] * len(names) + [SHARED, SHARED], dtype=torch.float64)
    middle = wanted.mean()
    found = torch.linalg.solve(seen.T @ seen + penalty.diag(), seen.T @ (wanted - middle)).tolist()
    bases = {name: float(middle) + found[place] for place, name in enumerate(names)}
    slopes = {name: found[len(names) + place] + found[-2] for place, name in enumerate(names)}
    return Forecast(bases, slopes, found[-1])


@dataclass(frozen=True, eq=False)
class Criterion:
    """What chooses for one target: the forecast or, if that did not choose better in the rehearsal, the usual rule."""

    forecast: Forecast
    trusts_forecast: bool
    gain: float
    """How much better the forecast chose than the usual rule, in dB, on rehearsed images that it was not fitted to."""

    def pick(self, candidates: Sequence[MemberResult]) -> MemberResult | None:
        """Pick a member's result; None if the usual rule is to choose."""
        known = [one for one in candidates if one.is_sound and one.member in self.forecast.bases]
        if not self.trusts_forecast or not known:
            return None
        best = best_match(known)
        return max(known, key=lambda one: self.forecast.predict(one, best))


def pick_fed(criterion: Criterion, candidates: Sequence[MemberResult]) -> MemberResult:
    """Pick the picture of T(x): by the forecast if that is to be trusted, otherwise by the lowest loss."""
    return criterion.pick(candidates) or min(candidates, key=lambda one: one.rank)


def learn_fed(tried: Sequence[Sequence[Tried]]) -> Criterion:
    """Learn to choose the picture of T(x); the usual rule is the lowest loss."""
    every = [own for own in tried if own]
    return learn(every, [min(own, key=lambda part: part.one.rank) for own in every], "fed", certainty=0.0)


PICTURE = "the picture of T(x)"


def options(fed: MemberResult, candidates: Sequence[MemberResult]) -> list[MemberResult]:
    """List what may be taken for x: first the picture of T(x), `fed`, then those of members that look for x itself."""
    picture = replace(fed.result, images=transformed_of(fed.result), transformed=None)
    return [replace(fed, member=PICTURE, result=picture), *(one for one in candidates if one.inverts_policy)]


def learn_original(tried: Sequence[Sequence[Tried]], fed: Criterion) -> Criterion:
    """Learn to choose the picture of x; the usual rule is the picture of T(x).

    Another is taken only if it was clearly better: by more than `CERTAIN` standard errors of its gain.
    """
    every = []
    for own in filter(None, tried):
        parts = {id(part.one): part for part in own}
        picked = pick_fed(fed, [part.one for part in own])
        picture, *others = options(picked, [part.one for part in own])
        shown = parts[id(picked)]
        every.append([replace(shown, one=picture, original=shown.pictured), *(parts[id(one)] for one in others)])
    return learn(every, [own[0] for own in every], "original", certainty=CERTAIN)


def learn(every: Sequence[Sequence[Tried]], usual: Sequence[Tried], target: Target, certainty: float) -> Criterion:
    """Fit the forecast; trust it if it gains on the usual choices, on average over images left out of the fit.

    The gain must exceed `certainty` times its standard error.
    """
    gains = []
    for at, own in enumerate(every):
        others = [*every[:at], *every[at + 1 :]]
        chosen = Criterion(fit(others, target), True, 0.0).pick([part.one for part in own]) if others else None
        scores = {id(part.one): part.score(target) for part in own}
        if chosen is not None:
            gains.append(scores[id(chosen)] - usual[at].score(target))
    if len(gains) < 2:
        return Criterion(Forecast({}, {}, 0.0), False, 0.0)
    found = torch.tensor(gains, dtype=torch.float64)
    gain, error = float(found.mean()), float(found.std()) / len(gains) ** 0.5
    return Criterion(fit(every, target), gain > certainty * error, gain)
