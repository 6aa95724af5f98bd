"""Where a command's jobs run."""

import pytest

from gradveil.cli.crews import gather_crew
from gradveil.errors import GradveilError
from gradveil.workers import Workers


def test_without_a_cluster_the_jobs_run_here() -> None:
    crew = gather_crew(2, None, threads=1)
    assert isinstance(crew, Workers)
    assert (crew.count, crew.threads) == (2, 1)


@pytest.mark.parametrize("address", ["1.2.3", "nowhere", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(GradveilError, match="HOST:PORT"), gather_crew(1, address):
        pass
