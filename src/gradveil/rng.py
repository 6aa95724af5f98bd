"""One seed, any number of named and independent random streams.

Nothing in gradveil seeds or reads the global random state: every draw takes a `torch.Generator` made here.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gradveil.errors import SettingsError

MAX_SEED = 2**63 - 1


def derive(seed: int, *names: str | int) -> int:
    """Derive the seed of the stream called `names` from `seed`.

    >>> derive(0, "attack", 3) == derive(0, "attack", 3)
    True
    >>> derive(0, "attack", 3) == derive(0, "attack", 4)
    False
    """
    if not 0 <= seed <= MAX_SEED:
        raise SettingsError(f"seed {seed} is out of range: give a whole number from 0 to {MAX_SEED}")
    # repr keeps 1 and "1" apart; the length prefix keeps ("ab", "c") and ("a", "bc") apart.
    parts = [repr(part) for part in (seed, *names)]
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") & MAX_SEED


def generator(seed: int, *names: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Make the generator of the stream called `names`."""
    return torch.Generator(device).manual_seed(derive(seed, *names))


def split(source: torch.Generator, count: int) -> list[torch.Generator]:
    """Draw `count` new generators from `source`."""
    seeds = torch.randint(0, MAX_SEED, (count,), generator=source, device=source.device)
    return [torch.Generator(source.device).manual_seed(int(seed)) for seed in seeds]


@contextmanager
def global_state_from(source: torch.Generator) -> Iterator[None]:
    """Make code that draws from torch's global state draw from `source`; restore the global state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(torch.randint(0, MAX_SEED, (), generator=source, device=source.device)))
        yield
