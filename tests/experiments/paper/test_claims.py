"""The claims, on results that are made up so that each verdict can be foretold."""

import pytest

from gradveil.experiments.paper import claim_1, claim_4, claim_5, claim_6, claim_7, extension_2, figure_2, k_points
from gradveil.experiments.paper.claims import find, render
from gradveil.experiments.paper.experiment import Claim, Experiment, Material
from gradveil.experiments.paper.figure_3 import model_of
from gradveil.experiments.paper.figure_5 import scores_of
from gradveil.experiments.paper.figure_6 import SEARCHED
from gradveil.experiments.paper.ledger import CLAIMS
from gradveil.experiments.paper.policy_table import HYBRID, NONE, PUBLISHED_ATTACK
from gradveil.experiments.paper.published import BEST_FIVE, PAIRS
from gradveil.experiments.paper.quirks import CORRECTED, FAITHFUL
from gradveil.experiments.paper.scales import CPU, PAPERS, SMOKE, Scale
from gradveil.experiments.paper.study import Line
from gradveil.experiments.paper.table_1 import make_table
from gradveil.experiments.paper.units import AttackUnit
from gradveil.experiments.paper.verdicts import FAILS, HOLDS, PARTLY, UNDECIDED, Finding
from gradveil.experiments.single_transforms import entries_of
from tests.experiments.paper.made_up import attacked, results, scored, trained


def claim_of(experiment: Experiment) -> Claim:
    assert experiment.claim is not None
    return experiment.claim


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: one.name)
def test_without_results_nothing_is_decided_and_smoke_never_decides(one: Experiment) -> None:
    claim = claim_of(one)
    assert find(claim, Material(CPU, results())).verdict == UNDECIDED
    sure = Claim("it holds", "yes", "yes", "always", lambda _: Finding(HOLDS, "so", "everything"))
    assert find(sure, Material(CPU, results())).verdict == HOLDS
    found = find(sure, Material(SMOKE, results()))
    assert found.verdict == UNDECIDED
    assert "everything" not in found.measured
    assert f"Verdict: {UNDECIDED}" in "\n".join(render(claim, Material(SMOKE, results())).lines)


def test_there_are_seven_claims_two_extensions_and_six_points() -> None:
    names = [one.name for one in CLAIMS]
    assert names[:9] == [*(f"claim-{number}" for number in range(1, 8)), "extension-1", "extension-2"]
    assert len(names) == 15


def judge_claim_1(gains: dict[str, float]) -> Finding:
    lines: list[Line] = []
    for letter, gain in gains.items():
        table = make_table(letter, CPU)
        lines += attacked(table.attacks(NONE, CPU.strongest, CORRECTED, CPU), 14, 12, 4.0)
        lines += attacked(table.attacks(HYBRID, CPU.strongest, CORRECTED, CPU), 9, 8, gain)
    return claim_1.judge(Material(CPU, results(lines)))


def test_claim_1_needs_all_four_networks() -> None:
    assert judge_claim_1(dict.fromkeys(PAIRS, 3.95)).verdict == FAILS
    assert judge_claim_1({"a": 3.95, "b": 2.0}).verdict == PARTLY
    assert judge_claim_1(dict.fromkeys(PAIRS, 0.0)).verdict == PARTLY
    assert f"{PAIRS['d']}, `standard-6`" in dict(judge_claim_1({"a": 3.95}).parts)


@pytest.mark.parametrize(("hybrid", "verdict"), [(0.60, HOLDS), (0.57, PARTLY), (0.50, FAILS)])
def test_claim_4_weighs_the_gap_with_the_error_of_the_test_set(hybrid: float, verdict: str) -> None:
    lines = [trained(model_of(NONE, PAPERS), 0.60), trained(model_of(HYBRID, PAPERS), hybrid)]
    assert claim_4.judge(Material(PAPERS, results(lines))).verdict == verdict


def test_claim_4_is_not_failed_by_a_short_training() -> None:
    lines = [trained(model_of(NONE, CPU), 0.60), trained(model_of(HYBRID, CPU), 0.50)]
    found = claim_4.judge(Material(CPU, results(lines)))
    assert found.verdict == UNDECIDED
    assert "200 epochs" in found.why


@pytest.mark.parametrize(("shallow", "verdict"), [(0.3, HOLDS), (0.7, PARTLY)])
def test_claim_5_compares_layers_image_by_image(shallow: float, verdict: str) -> None:
    table = make_table("a", CPU)
    lines = [
        *attacked(table.attacks(NONE, PUBLISHED_ATTACK, FAITHFUL, CPU), 12, 10, 1, shallow=0.7),
        *attacked(table.attacks(SEARCHED, PUBLISHED_ATTACK, FAITHFUL, CPU), 12, 10, 1, shallow=shallow),
    ]
    assert claim_5.judge(Material(CPU, results(lines))).verdict == verdict


def score_lines(scale: Scale, best: tuple[int, ...], tiny: bool = False) -> list[Line]:
    """Score every function of the catalogue; those with an entry in `best` far below the others."""
    units = scores_of(scale.tiny_semi if tiny else scale.semi, scale)
    return [
        scored(unit, 0.1 if any(entry in best for entry in entries_of(name)) else 0.6) for name, unit in units.items()
    ]


def test_claim_6_counts_the_published_five() -> None:
    assert claim_6.judge(Material(CPU, results(score_lines(CPU, BEST_FIVE)))).verdict == HOLDS
    assert claim_6.judge(Material(CPU, results(score_lines(CPU, (3, 0, 2, 6, 10))))).verdict == FAILS
    assert claim_6.judge(Material(CPU, results(score_lines(CPU, (3, 15, 18, 6, 10))))).verdict == PARTLY
    there = score_lines(CPU, BEST_FIVE, tiny=True)
    assert extension_2.judge(Material(CPU, results(there))).verdict == HOLDS
    assert extension_2.judge(Material(CPU, results(score_lines(CPU, BEST_FIVE)))).verdict == UNDECIDED


def test_claim_7_asks_for_more_than_the_chance_floor() -> None:
    strong: list[Line] = []
    floor: list[Line] = []
    for place, policy in enumerate(figure_2.random_policies(CPU.correlation_policies)):
        units = figure_2.attacks_of(policy, CPU)
        score = scored(figure_2.score_of(policy, CPU), 0.01 * place)
        strong += [score, *attacked(units, 10 + 0.1 * place, 9.0, 1.0)]
        floor += [score, *attacked(units, 10 + 0.1 * place, 9 + 0.1 * place + 0.5 * (place % 2), 1.0)]
    assert claim_7.judge(Material(CPU, results(strong))).verdict == HOLDS
    assert claim_7.judge(Material(CPU, results(floor))).verdict == PARTLY


def test_points_of_k_are_judged_by_their_most_demanding_cell() -> None:
    cells = k_points.batch_cells(CPU)
    (large,) = cells["100 images a client"]
    assert (large.count, large.per_client) == (100, 100)
    lines = attacked([large], 12, 10, 2.0)
    judged = k_points.POINTS[0].claim.judge(Material(CPU, results(lines)))
    assert judged.verdict == HOLDS
    untrained, trained_cell = k_points.training_cells(CPU).values()
    both = [*attacked(untrained, 20, 10, 8), *attacked(trained_cell, 12, 10, 2)]
    assert k_points.judge_training(Material(CPU, results(both))).verdict == HOLDS


def test_restarts_are_equal_and_the_best_rival_counts() -> None:
    cells = k_points.restart_cells(CPU)
    units = [unit for part in cells.values() for unit in part]
    assert {unit.restarts for unit in units if isinstance(unit, AttackUnit)} == {CPU.equal_restarts}
    lines = [
        *attacked(cells[PUBLISHED_ATTACK], 12, 10, 2),
        *attacked(cells["adam-l1"], 13, 10, 3),
        *attacked(cells["adam-l2"], 8, 10, 1),
    ]
    found = k_points.judge_restarts(Material(CPU, results(lines)))
    assert found.verdict == FAILS
    assert "adam-l1" in found.measured


def test_local_epochs_have_clients_of_two_images() -> None:
    for epochs, units in zip(CPU.local_epochs, k_points.local_cells(CPU).values(), strict=True):
        assert {(unit.epochs, unit.per_client) for unit in units} == {(epochs, 2)}


def test_widths_are_compared_by_their_spread() -> None:
    assert k_points.judge_widths(Material(CPU, results())).verdict == UNDECIDED
