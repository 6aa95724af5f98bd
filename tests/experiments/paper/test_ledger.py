import re

from gradveil.experiments.paper.experiment import Material
from gradveil.experiments.paper.ledger import CLAIMS, write_ledger
from gradveil.experiments.paper.policy_table import HYBRID, NONE
from gradveil.experiments.paper.quirks import CORRECTED
from gradveil.experiments.paper.registry import EXPERIMENTS
from gradveil.experiments.paper.scales import CPU, SMOKE
from gradveil.experiments.paper.study import Line
from gradveil.experiments.paper.table_1 import make_table
from gradveil.experiments.paper.verdicts import UNDECIDED
from tests.experiments.paper.made_up import attacked, results

MADE = {"gradveil": "0", "commit": "abc", "torch": "2", "processor": "any", "cores": 2}


def test_a_ledger_of_nothing_says_so_of_every_claim_and_page() -> None:
    text = write_ledger(Material(CPU, results()), "measured/paper/")
    assert text.count("| – | not run |") == len(CLAIMS)
    assert text.count(f"**Verdict: {UNDECIDED}.**") == len(CLAIMS)
    assert "Nothing was run yet." in text
    assert set(re.findall(r"measured/paper/([\w-]+)\.md", text)) == set(EXPERIMENTS)
    assert text.count("| not run | 0 |") == len(EXPERIMENTS)


def test_a_finding_stands_with_its_interval_its_n_and_its_reason() -> None:
    table = make_table("a", CPU)
    lines: list[Line] = [
        *attacked(table.attacks(NONE, CPU.strongest, CORRECTED, CPU), 14, 12, 4.0),
        *attacked(table.attacks(HYBRID, CPU.strongest, CORRECTED, CPU), 9, 8, 3.9),
    ]
    text = write_ledger(Material(CPU, results([{**one, "provenance": MADE} for one in lines])), "")
    assert "| Claim 1: reconstruction attacks become infeasible | **fails** | 4 of 128 units |" in text
    assert "over wrong updates +4.0 ± 0.1 dB without, +3.9 ± 0.1 dB with the policy" in text
    assert "n = 12, 1 seed(s)" in text
    assert "4 lines: gradveil 0, commit abc" in text


def test_smoke_is_never_a_finding() -> None:
    table = make_table("a", SMOKE)
    lines = attacked(table.attacks(NONE, SMOKE.strongest, CORRECTED, SMOKE), 14, 12, 4.0)
    text = write_ledger(Material(SMOKE, results([{**one, "provenance": MADE} for one in lines])), "")
    assert f"**{UNDECIDED}**" in text
    assert text.count(f"**Verdict: {UNDECIDED}.**") == len(CLAIMS)
