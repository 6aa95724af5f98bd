from gradveil.experiments.paper.experiment import Material
from gradveil.experiments.paper.policy_table import NONE, PUBLISHED_ATTACK
from gradveil.experiments.paper.quirk_shares import list_units, quirk_units, quirks_of, render
from gradveil.experiments.paper.quirks import (
    CIFAR10_STATISTICS,
    CORRECTED,
    FAITHFUL,
    FIRST_IMAGES,
    HALVED_LOSS,
    LOPSIDED_BASE,
)
from gradveil.experiments.paper.scales import CPU, SMOKE
from gradveil.experiments.paper.table_1 import SHOWN, make_table
from gradveil.experiments.paper.units import TrainUnit, with_models
from tests.experiments.paper.made_up import attacked, results


def test_each_quirk_changes_one_thing() -> None:
    plain = make_table("a", CPU).attacks(NONE, PUBLISHED_ATTACK, FAITHFUL, CPU)
    first, _ = quirk_units(FIRST_IMAGES, CPU)
    assert [(unit.choice, unit.count) for unit in first] == [("first", 6)]
    halved, _ = quirk_units(HALVED_LOSS, CPU)
    assert {unit.quirks for unit in halved} == {(HALVED_LOSS,)}
    assert [unit.model for unit in halved] == [unit.model for unit in plain]
    odd, policy = quirk_units(CIFAR10_STATISTICS, CPU)
    assert {unit.model.quirks for unit in (*odd, *policy)} == {(CIFAR10_STATISTICS,)}
    assert {unit.quirks for unit in odd} == {()}


def test_grey_images_have_no_quirk_of_colours() -> None:
    assert quirks_of(SMOKE) == [FIRST_IMAGES, HALVED_LOSS]
    assert CIFAR10_STATISTICS in quirks_of(CPU)


def test_two_models_are_trained_for_the_quirks_alone() -> None:
    shared = set(make_table("a", CPU).units(CPU))
    extra = [unit for unit in with_models(list_units(CPU)) if isinstance(unit, TrainUnit) and unit not in shared]
    assert len(extra) == 2


def test_the_share_of_a_quirk_is_the_effect_with_it_less_the_effect_without() -> None:
    table = make_table("a", CPU)
    lines = [
        *attacked(table.attacks(NONE, PUBLISHED_ATTACK, FAITHFUL, CPU), 15.0, 12.0, 3.0),
        *attacked(table.attacks(NONE, PUBLISHED_ATTACK, CORRECTED, CPU), 13.0, 11.5, 2.0),
        *attacked(table.attacks(SHOWN, PUBLISHED_ATTACK, CORRECTED, CPU), 8.0, 7.5, 1.0),
        *attacked(quirk_units(HALVED_LOSS, CPU)[0], 15.5, 12.0, 3.0),
        *attacked(quirk_units(HALVED_LOSS, CPU)[1], 8.0, 7.5, 1.0),
        *attacked(quirk_units(FIRST_IMAGES, CPU)[0], 16.0, 12.0, 3.0),
        *attacked(quirk_units(FIRST_IMAGES, CPU)[1], 8.0, 7.5, 1.0),
    ]
    text = "\n".join(render(Material(CPU, results(lines))).lines)
    shares = {row.split("`")[1]: row.split(" | ")[4] for row in text.split("\n") if row.startswith("| with `")}
    assert shares[LOPSIDED_BASE] == "+2.00 ± 0.00"
    assert shares[HALVED_LOSS] == "+0.50 ± 0.00"
    assert shares[FIRST_IMAGES] == "+1.00"
    assert shares[CIFAR10_STATISTICS] == "not run"
