import pytest

from gradveil.attacks import find_attack
from gradveil.defences import parse_arm
from gradveil.errors import UnknownNameError
from gradveil.experiments.paper.scales import CPU, PAPERS, SCALES, SMOKE, Scale, find_scale
from gradveil.models import factory


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_every_name_is_known(scale: Scale) -> None:
    assert find_scale(scale.name) is scale
    networks = [*scale.networks.values(), scale.semi, scale.tiny, scale.tiny_semi]
    for name in (*(one.model for one in networks), *scale.widths, *scale.depths):
        factory(name)
    for name in (*scale.steps, *scale.restarts, scale.strongest):
        find_attack(name)
    for arm in scale.random:
        parse_arm(arm)
    assert list(scale.networks) == list("abcd")
    assert scale.images % scale.group == 0 or scale.group > scale.images


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="cpu, paper, smoke"):
        find_scale("huge")


def test_smoke_decides_nothing_and_the_others_may() -> None:
    assert not SMOKE.decides
    assert CPU.decides
    assert PAPERS.decides


def test_a_cell_of_cpu_is_as_large_as_promised() -> None:
    assert CPU.images >= 12
    assert CPU.steps["adam-cosine"] >= 2400
    assert CPU.strongest == "standard"
    assert "standard" not in CPU.steps


def test_paper_runs_the_attacks_as_published() -> None:
    assert PAPERS.steps == PAPERS.restarts == {}
    assert len(PAPERS.random) == 10
    assert {one.training.epochs for one in PAPERS.networks.values()} == {200}
