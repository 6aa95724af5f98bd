"""Tables 2 to 5 and the anchor, on results that are made up."""

from gradveil.experiments.paper import anchor, table_2, table_3, table_4, table_5
from gradveil.experiments.paper.experiment import Material
from gradveil.experiments.paper.policy_table import HYBRID, NONE
from gradveil.experiments.paper.published import ATTACKS
from gradveil.experiments.paper.quirks import CORRECTED, FAITHFUL, HALVED_LOSS
from gradveil.experiments.paper.scales import CPU, SMOKE
from gradveil.experiments.paper.study import DIVERGED, Line
from gradveil.experiments.paper.units import AttackUnit, TrainUnit
from gradveil.experiments.paper.verdicts import PARTLY, UNDECIDED
from tests.experiments.paper.made_up import attacked, line, results, trained


def test_table_2_shares_its_models_and_halves_where_it_matters() -> None:
    units = table_2.list_units(CPU)
    assert not any(isinstance(unit, TrainUnit) for unit in units)
    assert len({unit.model for unit in units if isinstance(unit, AttackUnit)}) == 2
    halved = {unit.attack for unit in units if isinstance(unit, AttackUnit) and unit.quirks == (HALVED_LOSS,)}
    assert halved == {"lbfgs-l2", "adam-l1", "adam-l2"}


def test_table_2_beside_the_published_one_and_judged_attack_by_attack() -> None:
    lines: list[Line] = []
    for label, psnr, floor, excess in ((NONE, 14.0, 12.0, 3.0), (HYBRID, 9.0, 8.5, 0.5)):
        for quirks in (FAITHFUL, CORRECTED):
            lines += attacked(table_2.attacks_of(label, "adam-l1", quirks, CPU), psnr, floor, excess)
    material = Material(CPU, results(lines))
    text = "\n".join(table_2.render(material).lines)
    assert (
        "| Adam+L1 | 9.99 | 9.48 ± 0.71 | 14.00 ± 0.09 | 6.97 | 6.43 ± 0.16 | 9.00 ± 0.09 | 12 | 12.00 | 8.50 |" in text
    )
    assert "| Adam+L1 | 2,400 | +2.0 ± 0.1 | +0.5 ± 0.1 | 12 | +3.0 ± 0.1 | +0.5 ± 0.1 | +2.5 ± 0.0 |" in text
    assert "| LBFGS+L2 | its own | not run" in text
    assert table_2.judge("adam-l1", material).verdict == PARTLY
    assert {table_2.judge(attack, material).verdict for attack in ATTACKS if attack != "adam-l1"} == {UNDECIDED}


def test_table_3_attacks_a_clean_gradient_as_published_and_a_noisy_one_when_corrected() -> None:
    faithful, corrected = (table_3.attacks_of("gaussian:1e-2", quirks, CPU)[0] for quirks in (FAITHFUL, CORRECTED))
    assert faithful.model == corrected.model
    assert (faithful.arm, corrected.arm, corrected.model.arm) == ("none", "gaussian:1e-2", "gaussian:1e-2")
    hybrids = [table_3.attacks_of(HYBRID, quirks, CPU) for quirks in (FAITHFUL, CORRECTED)]
    assert hybrids[0] == hybrids[1]


def test_table_3_says_when_a_training_diverged() -> None:
    (model,) = table_3.models_of("laplacian:1e-2", CPU)
    (good,) = table_3.models_of("prune:70", CPU)
    lines = [line(model, **{DIVERGED: "training diverged"}), trained(good, 0.55)]
    lines += attacked(table_3.attacks_of("prune:70", FAITHFUL, CPU), 12.0, 11.0, 1.0)
    text = "\n".join(table_3.render(Material(CPU, results(lines))).lines)
    assert (
        "| laplacian:1e-2 | 9.67 / 39.59 | 12.03 ± 0.79 / 26.2 | not run | not run | 0 of 12 | training diverged |"
        in text
    )
    assert "| prune:70 | 12 / 77.12 | 11.62 ± 2.18 / 74.61 | 12.00 ± 0.09 | 11.00 | 12 | 55.0 |" in text


def test_table_4_takes_policies_from_the_same_network_on_the_other_data() -> None:
    for letter, first in (("c", "3-1-7"), ("d", "21-13-3")):
        table = table_4.make_table(letter, CPU)
        assert table.network == CPU.networks[letter]
        assert list(table.arms)[1] == first
    assert [one.name for one in table_4.TABLES] == ["table-4a", "table-4b"]
    assert "| 7-4-15 | 7.68 / 88.29 |" in "\n".join(table_4.render("d", Material(CPU, results())).lines)


def test_table_5_has_what_the_replication_has() -> None:
    text = "\n".join(table_5.render(Material(CPU, results())).lines)
    assert "| hybrid | – | 7.92 ± 0.79 / 57.38 | not run |" in text
    assert {unit.model.data for unit in table_5.list_units(CPU) if isinstance(unit, AttackUnit)} == {
        "tiny-imagenet-100"
    }


def test_the_anchor_has_one_model_and_no_spread() -> None:
    units = [unit for unit in anchor.list_units(CPU) if isinstance(unit, AttackUnit)]
    assert {unit.model.model for unit in units} == {"resnet20-4"}
    assert sum(unit.count for unit in units) == 12
    assert anchor.list_units(SMOKE) == []
    assert "no anchor" in anchor.render(Material(SMOKE, results())).lines[0]
    text = "\n".join(anchor.render(Material(CPU, results(attacked(units, 12.0, 11.0, 1.0)))).lines)
    assert "| `crop-flip` | 11.97 | 11.00 | +1.0 | +1.0 | 4 |" in text
