import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradveil.attacks import ATTACKS
from gradveil.cli.arms import find_named, refuse_changed_models, write_arm
from gradveil.errors import SettingsError

SOURCE = """
from gradveil.attacks import ATTACKS
from gradveil.defences import Defence

class Quiet(Defence):
    def __str__(self): return "quiet"

class Rebuilt(Defence):
    hooks = ("model",)
    def __str__(self): return "rebuilt"
    def model(self, model, generator): return model

slow = ATTACKS["adam-cosine"]
"""


@pytest.fixture(autouse=True)
def own_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_arms.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("own_arms", None)


def test_ours_and_a_persons_own_stand_side_by_side() -> None:
    named = find_named(["fast", "own_arms:slow"], ["none", "policy:3-1-7,own_arms:Quiet,no-base"])
    assert list(named.attacks.values()) == [ATTACKS["fast"], ATTACKS["adam-cosine"]]
    assert set(named.sources) == {"own_arms:slow", "own_arms:Quiet"}
    arm = named.arm("policy:3-1-7,own_arms:Quiet,no-base")
    assert arm.name == "policy:3-1-7,own_arms:Quiet,no-base"
    assert [*map(str, arm.defences)] == ["policy:3-1-7", "quiet"]
    assert list(named.by_their_words()) == ["quiet"]


def test_what_only_looks_like_own_code_is_a_mistyped_name() -> None:
    with pytest.raises(SettingsError, match="cannot be imported"):
        find_named([], ["gausian:x"])
    with pytest.raises(Exception, match="did you mean 'gaussian'"):
        find_named([], ["gausian:1e-3"]).arm("gausian:1e-3")


def test_a_defence_that_changes_the_model_cannot_be_trained_with() -> None:
    with pytest.raises(SettingsError, match="'own_arms:Rebuilt' changes the model"):
        refuse_changed_models(find_named([], ["own_arms:Rebuilt"]).defences)


@pytest.mark.parametrize(
    ("base", "policy", "others", "arm"),
    [
        (True, "none", [], "crop-flip"),
        (False, "none", [], "none"),
        (True, "3-1-7", ["clip:1"], "policy:3-1-7,clip:1"),
        (False, "none", ["own_arms:Quiet"], "own_arms:Quiet,no-base"),
    ],
)
def test_options_make_an_arm(base: bool, policy: str, others: list[str], arm: str) -> None:
    assert write_arm(base, policy, others) == arm
