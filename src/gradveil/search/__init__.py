"""The search for policies: Algorithm 1, racing, evolution; a journal on disk; the best ones validated.

The package can be called: `gradveil.search(model, data)` is `search_policies`.
"""

import sys
from types import ModuleType

from gradveil.search.baseline import find_indistinct
from gradveil.search.estimate import estimate_search
from gradveil.search.folder import PAGE, RESULT
from gradveil.search.outcome import Outcome, ScoredCandidate
from gradveil.search.own import choose_training, search_policies
from gradveil.search.records import JOURNAL, Records, read_records
from gradveil.search.run import SearchResult, run_search
from gradveil.search.select import find_front, make_hybrid
from gradveil.search.settings import BRIEFLY_TRAINED, SAMPLE, SEMI_TRAINED, SearchSettings
from gradveil.search.status import SearchStatus, Standing, make_status
from gradveil.search.validate import ValidatedPolicy, Validation

__all__ = [
    "BRIEFLY_TRAINED",
    "JOURNAL",
    "PAGE",
    "RESULT",
    "SAMPLE",
    "SEMI_TRAINED",
    "Outcome",
    "Records",
    "ScoredCandidate",
    "SearchResult",
    "SearchSettings",
    "SearchStatus",
    "Standing",
    "ValidatedPolicy",
    "Validation",
    "choose_training",
    "estimate_search",
    "find_front",
    "find_indistinct",
    "make_hybrid",
    "make_status",
    "read_records",
    "run_search",
    "search_policies",
]


class CallablePackage(ModuleType):
    """A package that can be called, for the same reason as `gradveil.audit`."""

    __call__ = staticmethod(search_policies)


sys.modules[__name__].__class__ = CallablePackage
