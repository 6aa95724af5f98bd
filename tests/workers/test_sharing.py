"""Values that many jobs share."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gradveil.rng import generator
from gradveil.workers import Report, Shared, Workers
from gradveil.workers.sharing import Here, InFile, recall, remember, shared_in_file


@dataclass(frozen=True)
class Sum:
    values: Shared[Tensor]
    place: int

    def run(self, report: Report) -> float:  # noqa: ARG002
        return float(self.values.get()[self.place].sum())


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_shared_reaches_every_job(count: int) -> None:
    values = torch.rand(3, 1000, generator=generator(0, "shared"))
    seen: list[int] = []
    with Workers(count) as workers:
        shared = workers.share(values)
        sums = workers.run([Sum(shared, place) for place in range(3)], on_result=lambda at, _: seen.append(at))
    assert sums == [float(row.sum()) for row in values]
    assert sorted(seen) == [0, 1, 2]


def test_a_value_stays_in_its_process() -> None:
    value = [1, 2]
    assert Here(value).get() is value


def test_a_file_is_read_once_for_each_process() -> None:
    with shared_in_file([1, 2]) as shared:
        first = shared.get()
        assert first == [1, 2]
        assert shared.get() is first
    assert shared.get() is first
    remember("another", 0)
    with pytest.raises(OSError, match="fd"):
        shared.get()


def test_a_shared_value_has_no_name_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Workers(2) as workers:
        shared = workers.share(torch.zeros(1000))
        assert isinstance(shared, InFile)
        assert list(tmp_path.rglob("*")) == []
        place = Path(f"/proc/{shared.owner}/fd/{shared.handle}")
        assert place.stat().st_mode & 0o777 == 0o600
        assert place.stat().st_nlink == 0


def test_a_process_keeps_only_the_latest_value() -> None:
    remember("first", 1)
    remember("second", 2)
    assert recall("first") is None
    assert recall("second") == 2
