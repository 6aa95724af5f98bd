"""Jobs give the same results wherever they run."""

import os
from dataclasses import dataclass

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
    def run(self, report: Report) -> None:  # noqa: ARG002
        os._exit(1)


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
            found = workers.run([Draw(index) for index in range(5)], lambda *event, e=events: e.append(event))
            assert [value for value, _ in found] == expected
            assert {threads for _, threads in found} == {1}
            assert {position for position, done, total in events if done == total} == set(range(5))
        with pytest.raises(SettingsError, match="not like this"):
            workers.run([Fail(), Fail()])
    assert torch.get_num_threads() == before


def test_a_dead_worker_is_an_error() -> None:
    with Workers(2) as workers, pytest.raises(GradveilError, match="--workers 1"):
        workers.run([Die(), Die()])


def test_no_workers_are_refused() -> None:
    with pytest.raises(SettingsError, match="1 or more"):
        Workers(0)
