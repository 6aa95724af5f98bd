"""The verdict: what the figures of all cells together allow to say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gradveil.audit.rule import WORDS, Kind, Outcome, Rule
from gradveil.audit.scoring import Cell, Row, give_p_values
from gradveil.audit.summary import Summary, summarise
from gradveil.metrics import Answer, ShareTest, holm

CONVERGED = 0.5
"""At least so many of the rebuilt pictures must explain their release as well as the true ones do."""
UNDEFENDED = "none"


@dataclass(frozen=True, eq=False)
class Verdict:
    """Rows with their corrected findings, and a summary with an outcome for each cell, in the same order."""

    cells: tuple[Cell, ...]
    summaries: tuple[Summary, ...]
    expected_false_findings: float

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of all."""
        return min((summary.outcome for summary in self.summaries), key=list(WORDS).index)


def judge(
    cells: Sequence[Cell], rule: Rule, kind: Kind, accuracies: Mapping[str, float] | None = None, planned: int = 0
) -> Verdict:
    """Judge all cells of an audit together; `planned` is their number if some are not there yet."""
    marked = mark_hits(give_p_values(cells), rule.error)
    test = share_test(rule, max(planned, len(cells)))
    found = [settle(summarise(cell, kind, rule.epsilon), cell, rule, test) for cell in marked]
    controls = {(one.phase, one.attack): one.outcome for one in found if one.arm == UNDEFENDED}
    checked = [check_control(one, controls.get((one.phase, one.attack))) for one in found]
    costed = [weigh(one, rule, accuracies or {}) for one in checked]
    return Verdict(tuple(marked), tuple(costed), 2 * rule.error)


def share_test(rule: Rule, cells: int) -> ShareTest:
    """Share the error of a false "leaks" out over the cells."""
    return ShareTest(rule.delta, rule.error / max(1, cells), rule.error)


def mark_hits(cells: Sequence[Cell], error: float) -> list[Cell]:
    """Correct the p-values of all images in all cells together."""
    p_values = [row.p_value for cell in cells for row in cell.rows if row.p_value is not None]
    rejected = iter(holm(p_values, error))
    marked = []
    for cell in cells:
        hits = [row.p_value is not None and next(rejected) and row.reached is True for row in cell.rows]
        rows = (replace(row, hit=hit) for row, hit in zip(cell.rows, hits, strict=True))
        marked.append(replace(cell, rows=tuple(rows)))
    return marked


def confirm_rows(cell: Cell, reached: Mapping[int, bool]) -> Cell:
    """Write down for some images whether another attack on the same release reached them too."""
    rows = (replace(row, confirmed=reached.get(row.image, row.confirmed)) for row in cell.rows)
    return replace(cell, rows=tuple(rows))


def decide(cell: Cell, test: ShareTest) -> tuple[Answer, int] | tuple[None, None]:
    """Walk over the images in their order; return the first certain answer and after how many images it came."""
    reached = count = 0
    for row in cell.rows:
        if row.reached is not None:
            reached, count = reached + row.reached, count + 1
            answer = test.answer(reached, count)
            if answer is not None:
                return answer, count
    return None, None


def settle(summary: Summary, cell: Cell, rule: Rule, test: ShareTest) -> Summary:
    """Say what the figures of one cell allow to say by themselves."""
    answer, after = decide(cell, test)
    summary = replace(summary, decided_after=after)
    share = summary.share
    if not summary.figures:
        return replace(summary, outcome="untrusted", reason=f"The attack gave no result: {first_reason(cell.rows)}.")
    if share is None:
        why = "There are too few other images of the attacked classes for a control"
        return replace(summary, outcome="untrusted", reason=f"{why}: give more images.")
    count = f"{share.reached} of {share.images} images"
    if answer == "above":
        reason = f"The attack came closer to {count} than chance allows; that was certain after {after} images."
        return replace(summary, outcome="leaks", reason=reason)
    if summary.hits:
        named = ", ".join(f"#{image}" for image in summary.hits[:5])
        reason = f"The attack came closer to {count} than chance allows, beyond doubt to {named}."
        return replace(summary, outcome="some", reason=reason)
    if summary.converged is not None and summary.converged < CONVERGED:
        reason = (
            f"In {1 - summary.converged:.0%} of the images the true picture explains the update better than the "
            "rebuilt one: the attack did not converge, and a better one may succeed."
        )
        return replace(summary, outcome="untrusted", reason=reason)
    return settle_quiet(summary, rule, answer)


def settle_quiet(summary: Summary, rule: Rule, answer: Answer | None) -> Summary:
    """Tell whether silence is enough to say that no leak was found."""
    share = summary.share
    assert share is not None
    bounds = [summary.figures[f"advantage_{target}"].high for target in ("transformed", "original")]
    low_means = all(bound is not None and bound < rule.epsilon for bound in bounds)
    if summary.failed:
        return replace(summary, reason=f"{summary.failed} attacks failed, which says nothing.", outcome="undecided")
    if answer == "below" and low_means:
        reason = (
            f"The attack reached {share.reached} of {share.images} images; the share it reaches is below "
            f"{rule.delta:.0%}, and both mean advantages lie below {rule.epsilon:g} dB. A stronger attack may do more."
        )
        return replace(summary, outcome="none-found", reason=reason)
    why = (
        f"a share of up to {share.high:.0%} remains possible" if answer != "below" else "a mean advantage is not small"
    )
    reason = f"The attack reached {share.reached} of {share.images} images; {why}: attack more images."
    return replace(summary, outcome="undecided", reason=reason)


def first_reason(rows: Sequence[Row]) -> str:
    return next((row.reason for row in rows if row.reason), "every run failed")


def check_control(summary: Summary, control: Outcome | None) -> Summary:
    """Believe in the silence of a defended arm only if the same attack succeeds without a defence."""
    if summary.arm == UNDEFENDED or summary.outcome not in ("none-found", "undecided"):
        return summary
    if control is None:
        return replace(summary, reason=f"{summary.reason} No arm without a defence shows that this attack works here.")
    if control in ("leaks", "some"):
        return summary
    reason = "Without a defence the same attack found nothing either, so its silence says nothing about this one."
    return replace(summary, outcome="untrusted", reason=reason)


def weigh(summary: Summary, rule: Rule, accuracies: Mapping[str, float]) -> Summary:
    """Add what the arm costs, and whether the definition is met."""
    accuracy, plain = accuracies.get(summary.arm), accuracies.get(UNDEFENDED)
    cost = None if accuracy is None or plain is None else plain - accuracy
    if summary.outcome == "leaks" or (cost is not None and cost >= rule.gamma):
        definition = "not met"
    else:
        definition = "met" if summary.outcome == "none-found" and cost is not None else "undecided"
    return replace(summary, accuracy=accuracy, accuracy_cost=cost, definition=definition)


def headline(summaries: Sequence[Summary]) -> str:
    """Say the most important thing first."""
    total = len(summaries)
    counts = {outcome: sum(summary.outcome == outcome for summary in summaries) for outcome in WORDS}
    settings = f"{total} setting{'' if total == 1 else 's'}"
    leaking = counts["leaks"] + counts["some"]
    if leaking:
        where = f"in all {settings}" if leaking == total > 1 else f"in {leaking} of {settings}"
        return f"The shared updates leak: {where} the attacker came closer to private images than chance allows."
    if counts["none-found"] == total:
        return (
            f"In none of {settings} did this attack come closer to the images than chance allows. "
            "That is no proof of privacy: a stronger attack may succeed."
        )
    open_ones = counts["undecided"] + counts["untrusted"]
    return f"This audit cannot tell: {open_ones} of {settings} ended without an answer, and none showed a leak."
