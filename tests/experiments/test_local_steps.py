"""The study of local steps: what it runs, and that it goes on where it was."""

from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.experiments import local_steps
from gradveil.experiments.local_steps import (
    JOURNAL,
    NearnessTrial,
    OrderTrial,
    SightingTrial,
    capture_rounds,
    find_line,
    order,
    run_local_steps,
    sightings,
)
from gradveil.journal import Journal
from gradveil.study import silent


def test_every_cell_has_enough_images_and_both_attacks() -> None:
    cells = [one for one in order() if isinstance(one, OrderTrial)]
    assert min(one.images for one in cells) >= 32
    assert {one.attack for one in cells} == {"fast", "fedavg"}
    assert all(one.images % one.owned == 0 for one in cells)
    arms = {one.arm for one in sightings() if isinstance(one, SightingTrial)}
    assert len(arms) == 3


def test_rounds_draw_anew_and_show_the_same_images() -> None:
    captured = capture_rounds(data.load("fashion-mnist-sample"), "gaussian:1e-2,no-base", 2)
    assert len(captured) == 64
    first, second = (next(one for name, one in captured.items() if name.startswith(number)) for number in ("1-", "2-"))
    assert torch.equal(first.truths[0].original, second.truths[0].original)
    for tensors in (first.round.weights, first.round.update.tensors):
        others = second.round.weights if tensors is first.round.weights else second.round.update.tensors
        assert not all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())


def test_a_journal_is_only_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = NearnessTrial("lenet-relu", "eval")
    monkeypatch.setattr(local_steps, "PARTS", {"nearness": lambda: iter([trial])})
    sample = data.load("fashion-mnist-sample")
    for _ in range(2):
        run_local_steps(tmp_path, sample, ["nearness"], silent)
    entries = Journal(tmp_path / JOURNAL).read()
    assert len(entries) == 1
    line = find_line(trial, entries)
    assert line is not None
    assert len(line["whole"]) == 32
    near, far = line["whole"][0][0], line["whole"][0][-1]
    assert 0 <= near < far
    assert find_line(NearnessTrial("lenet-relu", "train"), entries) is None
