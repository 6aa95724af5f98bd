from gradveil.experiments.paper.published import ATTACKS
from gradveil.experiments.paper.quirks import (
    CORRECTED,
    FAITHFUL,
    HALVED_LOSS,
    QUIRKS,
    attack_quirks,
    released_arm,
    undefended_arm,
)


def test_faithful_is_all_quirks_and_corrected_none() -> None:
    assert set(FAITHFUL) == set(QUIRKS)
    assert CORRECTED == ()
    assert all(quirk.published and quirk.ours for quirk in QUIRKS.values())


def test_the_undefended_arm_is_cropped_and_flipped_only_when_corrected() -> None:
    assert undefended_arm(FAITHFUL) == "none"
    assert undefended_arm(CORRECTED) == "crop-flip"


def test_noise_reaches_the_attack_only_when_corrected() -> None:
    assert released_arm("gaussian:1e-2", FAITHFUL) == "none"
    assert released_arm("gaussian:1e-2", CORRECTED) == "gaussian:1e-2"


def test_half_the_gradient_is_released_where_it_changes_the_distance() -> None:
    halved = [attack for attack in ATTACKS if attack_quirks(attack, FAITHFUL) == (HALVED_LOSS,)]
    assert halved == ["lbfgs-l2", "adam-l1", "adam-l2"]
    assert all(attack_quirks(attack, CORRECTED) == () for attack in ATTACKS)
