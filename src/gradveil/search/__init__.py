"""The search for policies: Algorithm 1, racing, evolution; a journal on disk; the best ones validated."""

from gradveil.search.outcome import Outcome
from gradveil.search.run import search
from gradveil.search.select import Trial, find_front, make_hybrid
from gradveil.search.settings import SearchSettings
from gradveil.search.study import Study

__all__ = ["Outcome", "SearchSettings", "Study", "Trial", "find_front", "make_hybrid", "search"]
