from gradveil.experiments.paper.experiment import Material
from gradveil.experiments.paper.policy_table import HYBRID, NONE, PUBLISHED_ATTACK
from gradveil.experiments.paper.quirks import CORRECTED, FAITHFUL
from gradveil.experiments.paper.scales import CPU
from gradveil.experiments.paper.table_1 import SHOWN, TABLES, glance_line, make_table, render_shares
from gradveil.experiments.paper.units import LEARNER
from tests.experiments.paper.made_up import attacked, results


def test_there_are_four_tables() -> None:
    assert [table.name for table in TABLES] == ["table-1a", "table-1b", "table-1c", "table-1d"]


def test_the_effect_is_taken_apart_and_the_parts_add_up() -> None:
    table = make_table("a", CPU)
    lines = [
        *attacked(table.attacks(NONE, PUBLISHED_ATTACK, FAITHFUL, CPU), 15.0, 12.0, 3.0),
        *attacked(table.attacks(NONE, PUBLISHED_ATTACK, CORRECTED, CPU), 13.0, 11.5, 2.0),
        *attacked(table.attacks(SHOWN, PUBLISHED_ATTACK, CORRECTED, CPU), 8.0, 7.5, 1.0),
    ]
    text = "\n".join(render_shares(Material(CPU, results(lines))))
    assert "PSNR with 3-1-7 | +7.00 ± 0.00 | 12 |" in text
    assert "crop and flip, through the chance floor | +0.50 ± 0.00 |" in text
    assert "crop and flip, through what the attack gains over it | +1.50 ± 0.00 |" in text
    assert "the policy, through the chance floor | +4.00 ± 0.00 |" in text
    assert "the policy, through what the attack gains over it | +1.00 ± 0.00 |" in text


def test_a_glance_shows_the_published_fall_ours_and_chance() -> None:
    table = make_table("a", CPU)
    plain = attacked(table.attacks(NONE, PUBLISHED_ATTACK, FAITHFUL, CPU), 15.0, 12.0, 3.0)
    both = [*plain, *attacked(table.attacks(HYBRID, PUBLISHED_ATTACK, FAITHFUL, CPU), 9.0, 8.0, 1.0)]
    learnt = [
        *attacked(table.attacks(NONE, LEARNER, CORRECTED, CPU), 12.0, 10.0, 3.0),
        *attacked(table.attacks(HYBRID, LEARNER, CORRECTED, CPU), 12.0, 10.0, 1.0),
    ]
    line = glance_line("a", Material(CPU, results(both, learnt)))
    assert line[1:7] == ["13.9 → 7.6", "12.2 → 8.2", "15.0 → 9.0", "12.0 → 8.0", "12", "+3.0 ± 0.1 → +1.0 ± 0.1"]
    assert line[7:] == ["100% → 0% (n = 100)"]
    nothing = ["not run", "not run", "0 of 12", "not run", "not run"]
    assert glance_line("a", Material(CPU, results(plain)))[3:] == nothing
