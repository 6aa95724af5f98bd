"""How far a search is, from its journal alone: anyone may ask while it runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradveil.errors import OutputError
from gradveil.search.baseline import NONE
from gradveil.search.records import Line, Records
from gradveil.search.select import order
from gradveil.search.settings import SearchSettings


@dataclass(frozen=True)
class Standing:
    """What is known of one policy so far: the mean of S_pri over `images` images, and S_acc where it was taken."""

    policy: str
    privacy: float
    images: int
    exact: bool
    accuracy_score: float | None


@dataclass(frozen=True)
class SearchStatus:
    """A search at one moment; `leaders` are the best of those that were scored most thoroughly."""

    settings: SearchSettings
    finished: bool
    jobs: int
    seconds: float
    with_accuracy: int
    rounds: tuple[Line, ...]
    standings: tuple[Standing, ...]
    leaders: tuple[Standing, ...]
    validations: tuple[Line, ...]
    at_work: bool = True

    @property
    def headline(self) -> str:
        """Say in a line how far it is."""
        counts = f"{len(self.standings)} different policies scored, {self.with_accuracy} with S_acc"
        if not self.finished and not self.at_work:
            # Where too few qualify, more are drawn than were asked for.
            of = f" of {self.settings.candidates}" if len(self.standings) <= self.settings.candidates else ""
            return f"stopped, {len(self.standings)}{of} candidates scored"
        state = "finished" if self.finished else "no score yet" if not self.jobs else "at work"
        last = f"; round {self.rounds[-1]['number']} of {self.rounds[-1]['of']} done" if self.rounds else ""
        return f"{state}: {counts}{last}; {self.seconds:.0f} s of processor time"


def make_status(records: Records, at_work: bool = True) -> SearchStatus:
    """Put the journal's lines together; lines that no search wrote are refused.

    A search that is neither finished nor `at_work` was stopped.
    """
    try:
        return replace(put_together(records), at_work=at_work)
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        raise OutputError(f"the journal holds a line that no search wrote: {error}; restore it") from error


def put_together(records: Records) -> SearchStatus:
    settings = SearchSettings.from_record(records.header["study"])
    standings = find_standings(records, settings)
    return SearchStatus(
        settings,
        any(line["event"] == "done" for line in records.events),
        records.jobs,
        records.seconds,
        len(records.accuracy_batches.keys() - {NONE}),
        tuple({**line, "of": line["of"], "number": line["number"]} for line in records.events if is_round(line)),
        tuple(standings),
        tuple(find_leaders(standings, settings.keep)),
        tuple(records.validations),
    )


def is_round(line: Line) -> bool:
    return bool(line["event"] == "round")


def find_standings(records: Records, settings: SearchSettings) -> list[Standing]:
    """Take for each policy its exact scores if it has all of them, else the best that there is of every image."""
    seen: dict[str, dict[int, float]] = {}
    for (_, policy), values in records.privacy.items():
        if policy == NONE:
            continue
        seen.setdefault(policy, {}).update(values)
    standings = []
    for policy, values in seen.items():
        exact = records.privacy.get((settings.rule, policy), {})
        is_exact = len(exact) == settings.images
        scores = list((exact if is_exact else values).values())
        accuracy_score = records.accuracy_score(policy) if policy in records.accuracy_batches else -math.inf
        standings.append(
            Standing(
                policy,
                math.fsum(scores) / len(scores),
                len(scores),
                is_exact,
                accuracy_score if math.isfinite(accuracy_score) else None,
            )
        )
    return [standing for standing in standings if math.isfinite(standing.privacy)]


def find_leaders(standings: Sequence[Standing], keep: int) -> list[Standing]:
    """Take the best among those with exact scores, or, while there are too few, with the most images."""
    exact = [standing for standing in standings if standing.exact]
    most = max((standing.images for standing in standings), default=0)
    chosen = exact if len(exact) >= keep else [standing for standing in standings if standing.images == most]
    return [chosen[place] for place in order([standing.privacy for standing in chosen])][:keep]
