"""Jobs in this process and in local processes."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from gradveil.errors import GradveilError, SettingsError
from gradveil.rng import generator
from gradveil.workers import Report, Workers


@dataclass(frozen=True)
class Draw:
    name: int

    def run(self, report: Report) -> tuple[float, int]:
        for step in range(1, 4):
            report(step, 3)
        return torch.rand(1, generator=generator(0, self.name)).item(), torch.get_num_threads()


@dataclass(frozen=True)
class Die:
    """Take the process down as often as it may."""

    marks: Path
    times: int

    def run(self, report: Report) -> int:  # noqa: ARG002
        if len(list(self.marks.iterdir())) < self.times:
            (self.marks / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 7


@dataclass(frozen=True)
class Fail:
    def run(self, report: Report) -> None:  # noqa: ARG002
        raise SettingsError("not like this")


@pytest.mark.parametrize("count", [1, 2])
def test_results_come_in_order_and_alike(count: int) -> None:
    before = torch.get_num_threads()
    expected = [torch.rand(1, generator=generator(0, index)).item() for index in range(5)]
    with Workers(count) as workers:
        for _ in range(2):
            events: list[tuple[int, int, int]] = []
            results = workers.run([Draw(index) for index in range(5)], lambda *event, e=events: e.append(event))
            assert [value for value, _ in results] == expected
            assert {threads for _, threads in results} == {1}
            assert {position for position, done, total in events if done == total} == set(range(5))
        with pytest.raises(SettingsError, match="not like this"):
            workers.run([Fail(), Fail()])
    assert torch.get_num_threads() == before


def test_a_dead_worker_is_replaced_and_its_job_repeated(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with Workers(2) as workers:
        results = workers.run([Die(tmp_path, 1) for _ in range(4)], on_result=lambda *event: seen.append(event))
    assert results == [7] * 4
    assert sorted(seen) == [(position, 7) for position in range(4)]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_job_that_kills_every_worker_is_named(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    jobs = [Die(tmp_path / "none", 0), Die(tmp_path, 99), Die(tmp_path / "none", 0)]
    seen: list[int] = []
    with Workers(2) as workers, pytest.raises(GradveilError, match=r"job 2 of 3.*--workers 1"):
        workers.run(jobs, on_result=lambda position, _: seen.append(position))
    assert 1 not in seen
    assert len(set(seen)) == len(seen)


def test_no_workers_are_refused() -> None:
    with pytest.raises(SettingsError, match="1 or more"):
        Workers(0)
