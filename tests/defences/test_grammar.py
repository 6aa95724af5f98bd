"""How defences with parameters are written, and which strengths are refused."""

from dataclasses import dataclass

import pytest

from gradveil.defences import parse_arm, parse_defence
from gradveil.errors import InputError


@dataclass(frozen=True)
class Bad:
    text: str
    says: str


@pytest.mark.parametrize(
    "bad",
    [
        Bad("gaussian:-1", "0 or more"),
        Bad("gaussian:nan", "0 or more"),
        Bad("gaussian:inf", "0 or more"),
        Bad("gaussian", "lacks scale"),
        Bad("gaussian:", "lacks scale"),
        Bad("gaussian:much", "not a number"),
        Bad("gaussian:1:2", "cannot be used"),
        Bad("gaussian:scale=1:scale=2", "cannot be used"),
        Bad("gaussian:sigma=1", "cannot be used"),
        Bad("laplacian:-0.1", "0 or more"),
        Bad("prune:150", "0 ≤ P < 100"),
        Bad("prune:100", "0 ≤ P < 100"),
        Bad("prune:nan", "0 ≤ P < 100"),
        Bad("topk:0", "0 < P ≤ 100"),
        Bad("topk:101", "0 < P ≤ 100"),
        Bad("clip:0", "above 0"),
        Bad("clip:-1", "above 0"),
        Bad("sign:3", "takes no parameters"),
        Bad("quantise:1", "2 to 16"),
        Bad("quantise:2.5", "not a whole number"),
        Bad("quantise:33", "2 to 16"),
        Bad("mixup:0", "0 < A ≤ 100"),
        Bad("instahide:1", "2 ≤ K ≤ 16"),
        Bad("dpsgd", "lacks noise and clip"),
        Bad("dpsgd:1.1", "cannot be used"),
        Bad("dpsgd:noise=1.1", "lacks clip"),
        Bad("dpsgd:noise=-1:clip=1", "S ≥ 0"),
        Bad("dpsgd:noise=nan:clip=1", "S ≥ 0"),
        Bad("dpsgd:noise=1:clip=0", "C > 0"),
        Bad("dpsgd:noise=1:clip=1:delta=1", "0 < D < 1"),
        Bad("soteria:100", "0 ≤ P < 100"),
        Bad("soteria:-1", "0 ≤ P < 100"),
        Bad("precode:width=0", "1 ≤ K ≤ 4096"),
        Bad("precode:weight=nan", "0 ≤ B ≤ 1"),
        Bad("censor:trials=0", "1 ≤ K ≤ 1000"),
        Bad("censor:rate=0", "above 0"),
        Bad("censor:fallback=2", "F = 1"),
        Bad("oasis:upside-down", "some of major"),
        Bad("oasis:hflip+hflip", "each once"),
        Bad("oasis:+", "each once"),
        Bad("percentile:percent=101", "0 ≤ P ≤ 100"),
        Bad("percentile:gamma=0", "above 0"),
        Bad("percentile:gamma=nan", "above 0"),
        Bad("oasis,dpsgd:noise=1:clip=1", "name dpsgd first"),
        Bad("random-policy", "names no seed"),
        Bad("random-policy:-1", "names no seed"),
        Bad("crop-flip:4", "no parameters"),
        Bad("gauss:1", "choose from"),
        Bad("soteria:40,dpsgd:noise=1:clip=1", "name dpsgd first"),
        Bad("gaussian:1,none", "choose from"),
    ],
    ids=lambda bad: bad.text,
)
def test_a_bad_strength_is_refused_with_the_range(bad: Bad) -> None:
    with pytest.raises(InputError) as found:
        parse_arm(bad.text)
    assert bad.says in str(found.value)
    assert "\n" not in str(found.value)


def test_keys_may_name_the_only_parameter() -> None:
    assert parse_defence("gaussian:scale=1e-3") == parse_defence("gaussian:0.001")
    assert str(parse_defence("dpsgd:clip=1:noise=1.1")) == "dpsgd:noise=1.1:clip=1"
    assert str(parse_defence("gaussian:0.0012345678")) == "gaussian:0.0012345678"
