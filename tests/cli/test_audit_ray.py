"""`gradveil audit --ray`: the same record on a real cluster."""

from pathlib import Path

import pytest

from tests.cli.test_audit_resume import WORDS, finish, without_times
from tests.workers.test_cluster import Cluster, cluster

__all__ = ["cluster"]


@pytest.mark.slow
def test_a_cluster_gives_the_same_record(cluster: Cluster, tmp_path: Path) -> None:
    for name, words in (("here", ()), ("there", ("--ray", cluster.address))):
        done = finish(*WORDS, *words, "--out", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
    assert without_times(tmp_path / "here/audit.json") == without_times(tmp_path / "there/audit.json")
    assert not (tmp_path / "there/work").exists()
