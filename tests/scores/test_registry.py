"""Every registered score goes through the same contract."""

import pytest
import torch

from gradveil.errors import UnknownNameError
from gradveil.scores import EXACT, SCORES, find_score
from gradveil.transforms import PolicySet
from tests.scores.inputs import NONE, SHIFTED, SMOOTHED, make_inputs

RULE = "lobatto-3"
QUICK = [name for name in SCORES if name not in ("brief-attack-12", "brief-attack-24")]
WITHOUT_MODEL = {"blind-guess"}


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("policy", [NONE, SHIFTED], ids=str)
def test_the_score_of_an_image_does_not_depend_on_the_others(name: str, policy: PolicySet) -> None:
    kind, inputs = SCORES[name], make_inputs()
    whole = kind.make(inputs, RULE).score(policy)
    assert whole.shape == (6,)
    assert whole.dtype == torch.float64
    assert whole.isfinite().all()
    assert torch.equal(kind.make(inputs, RULE).score(policy, [5, 1]), whole[[5, 1]])


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("rule", [RULE, "trapezoid-21"])
def test_the_planned_block_holds_that_of_the_score(name: str, rule: str) -> None:
    kind = SCORES[name]
    assert kind.block(rule) == kind.make(make_inputs(images=2), rule).block
    assert kind.gradients(rule) >= 1
    assert set(kind.errors) <= {kind.rough, kind.fine}


@pytest.mark.parametrize("name", QUICK)
def test_the_loss_counts_for_every_score_of_a_model(name: str) -> None:
    plain, smoothed = (
        SCORES[name].make(inputs, RULE).score(SHIFTED) for inputs in (make_inputs(), make_inputs(SMOOTHED))
    )
    assert torch.equal(plain, smoothed) == (name in WITHOUT_MODEL)


@pytest.mark.parametrize("name", SCORES)
def test_inputs_move_together(name: str) -> None:
    moved = make_inputs(images=2).to("meta")
    assert {moved.images.images.device.type, moved.public.labels.device.type} == {"meta"}
    assert all(parameter.is_meta for parameter in moved.task.model.parameters())
    assert SCORES[name].label


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    assert find_score("s-pri").rough != EXACT
    with pytest.raises(UnknownNameError, match=r"unknown score 'beauty': choose from blind-guess, .*s-pri"):
        find_score("beauty")
