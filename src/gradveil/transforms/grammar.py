"""Read policies: `none`, `3-1-7`, `3-1-7+43-18-18`, `wide/3-1-7`, and by name `translateX:9 > contrast:6`."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gradveil.errors import PolicyError
from gradveil.transforms.catalogue import CATALOGUE, Catalogue, find_catalogue
from gradveil.transforms.policy import MAX_STEPS, Policy, PolicySet

FORMS = "write indices as in 3-1-7, hybrids as in 3-1-7+43-18-18, or none"


@dataclass(frozen=True)
class Part:
    """A part of the text, and where it starts."""

    text: str
    start: int

    def split(self, separator: str) -> "Iterator[Part]":
        start = self.start
        for piece in self.text.split(separator):
            yield Part(piece, start)
            start += len(piece) + len(separator)

    def strip(self) -> "Part":
        left = len(self.text) - len(self.text.lstrip())
        return Part(self.text.strip(), self.start + left)


@dataclass(frozen=True)
class Reader:
    """The whole text, for error messages, and the catalogue of its indices."""

    whole: str
    catalogue: Catalogue

    def error(self, part: Part, reason: str) -> PolicyError:
        shown = f"'{part.text}'" if part.text else "nothing"
        return PolicyError(f"policy '{self.whole}': {shown} at character {part.start + 1} {reason}")

    def read_set(self, part: Part) -> PolicySet:
        return PolicySet(tuple(self.read_policy(member.strip()) for member in part.split("+")))

    def read_policy(self, part: Part) -> Policy:
        if part.text == "none":
            return Policy((), self.catalogue)
        named = re.search("[A-Za-z]", part.text) is not None
        if named and re.search(r"^\s*[0-9]+\s*-|(^|>)\s*[0-9]+\s*(>|$)", part.text):
            raise self.error(part, f"mixes indices and names: {FORMS}")
        read: Callable[[Part], int] = self.read_name if named else self.read_index
        steps = [step.strip() for step in part.split(">" if named else "-")]
        indices = tuple(read(step) for step in steps)
        if len(indices) > MAX_STEPS:
            raise self.error(
                steps[MAX_STEPS], f"is step {MAX_STEPS + 1}: a policy has at most {MAX_STEPS}; drop the rest"
            )
        return Policy(indices, self.catalogue)

    def read_index(self, part: Part) -> int:
        if not re.fullmatch("0|[1-9][0-9]{0,8}", part.text):
            raise self.error(part, f"is not an index: {FORMS}")
        index, last = int(part.text), len(self.catalogue) - 1
        if index > last:
            raise self.error(part, f"is not in catalogue {self.catalogue.name}: choose an index from 0 to {last}")
        return index

    def read_name(self, part: Part) -> int:
        """Find the first entry with that name; an operation without levels needs no level."""
        names = [str(transform) for transform in self.catalogue.transforms]
        functions = [transform.function for transform in self.catalogue.transforms]
        for known in (names, functions):
            if part.text in known and part.text != "identity":
                return known.index(part.text)
        operation = part.text.partition(":")[0].strip()
        near = [name for name in dict.fromkeys(names) if name.partition(":")[0] == operation]
        allowed = near or sorted({name.partition(":")[0] for name in names})
        raise self.error(part, f"is not in catalogue {self.catalogue.name}: choose from {', '.join(allowed)}")


def parse_policy(text: str, catalogue: Catalogue | None = None) -> PolicySet:
    """Read a policy or a hybrid; `catalogue` is v1 unless given, here or in front as in `wide/3-1-7`.

    >>> print(parse_policy("translateX:9 > contrast:6 > translateY:2"))
    3-1-7
    """
    whole = Part(text, 0)
    name, slash, rest = text.partition("/")
    if slash:
        whole = Part(rest, len(name) + 1)
        catalogue = choose_catalogue(text, name.strip(), catalogue)
    return Reader(text, catalogue or CATALOGUE).read_set(whole)


def choose_catalogue(text: str, name: str, given: Catalogue | None) -> Catalogue:
    """Return the catalogue that the text names; a catalogue that was given must be the same."""
    if given is None:
        return find_catalogue(name)
    if given.name != name:
        raise PolicyError(f"policy '{text}': it is of catalogue {name}, not of {given.name}; leave one of the two out")
    return given


def from_record(record: Mapping[str, object], catalogue: Catalogue | None = None) -> PolicySet:
    """Read the record of `PolicySet.to_record`; a catalogue of your own must be passed again."""
    unknown = set(record) - {"catalogue", "policy"}
    name, text = record.get("catalogue"), record.get("policy")
    if unknown or not isinstance(name, str) or not isinstance(text, str):
        raise PolicyError(
            f"a policy record {dict(record)}: it must have the texts 'catalogue' and 'policy' and no more"
        )
    return parse_policy(f"{name}/{text}", catalogue)
