"""When a claim holds: rules over intervals, decided before any result was seen.

Every rule has its numbers here. What is not decided is said to be so, with the reason.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy import stats

from gradveil.metrics import ClusterInterval, rate_interval

Verdict = Literal["holds", "partly", "fails", "not decidable at this scale"]
HOLDS: Verdict = "holds"
PARTLY: Verdict = "partly"
FAILS: Verdict = "fails"
UNDECIDED: Verdict = "not decidable at this scale"

EPSILON = 1.0
"""A score of less than so many dB over that of wrong updates is no reconstruction to speak of."""
LEAST_IMAGES = 12
AT_CHANCE_IMAGES = 32
"""Nothing is said to be at chance on fewer images."""
NOTHING_TO_LOSE = "without a policy the attack gains nothing that is certain, so none can be lost"
ACCURACY_COST = 5.0
"""A policy that costs more points of accuracy does not keep the model useful (γ of the definition)."""
NEGLIGIBLE_COST = 2.0
"""Points of accuracy, with the error of the test set, that a policy may cost and be called free."""
SIMILARITY_GAP = 0.1
"""How far apart layers' similarities are before they are called different."""
STRONG, WEAK = 0.5, 0.3
"""Correlations: above the first it is one to search by, below the second it is not."""
LEAST_POLICIES = 30
BEST = 5
SURE, POSSIBLE = 0.95, 0.05
"""Shares of resamples in which a transformation is surely, or possibly, among the best five."""
LEAST_SCORED = 50


@dataclass(frozen=True)
class Finding:
    """A verdict, why it is that, and what was measured; for a claim of several parts, the finding of each."""

    verdict: Verdict
    why: str
    measured: str = "nothing was run"
    parts: tuple[tuple[str, "Finding"], ...] = ()


def undecided(why: str, measured: str = "nothing was run") -> Finding:
    return Finding(UNDECIDED, why, measured)


def combine(parts: Sequence[tuple[str, Finding]]) -> Finding:
    """Put the findings of several parts together: all must hold for the whole to hold."""
    decided = [finding.verdict for _, finding in parts if finding.verdict != UNDECIDED]
    verdict = PARTLY
    if not decided:
        verdict = UNDECIDED
    elif set(decided) == {HOLDS} and len(decided) == len(parts):
        verdict = HOLDS
    elif set(decided) == {FAILS}:
        verdict = FAILS
    return Finding(verdict, "the table says it part by part", f"{len(parts)} parts", tuple(parts))


def gains_nothing(control: ClusterInterval) -> bool:
    """Tell whether an attack has enough images, and gains nothing that is certain."""
    return control.count >= LEAST_IMAGES and control.low is not None and control.low <= 0


def judge_protection(
    control: ClusterInterval | None, protected: ClusterInterval | None, drop: ClusterInterval | None
) -> Finding:
    """Judge whether a policy makes an attack infeasible: dB over wrong updates without it, with it, and the drop."""
    if control is None or protected is None or drop is None:
        if control is None or not gains_nothing(control):
            return undecided("a cell was not run", "not run")
        without = f"over wrong updates {control.text(1, signed=True)} dB without, n = {control.count}"
        return undecided(NOTHING_TO_LOSE, f"{without}; with the policy it was not run")
    measured = (
        f"over wrong updates {control.text(1, signed=True)} dB without, {protected.text(1, signed=True)} dB with the "
        f"policy, drop {drop.text(1, signed=True)} dB, n = {drop.count}, {drop.clusters} seed(s)"
    )
    if drop.count < LEAST_IMAGES or None in (control.low, protected.high, drop.low, drop.high):
        return undecided(f"{drop.count} images, fewer than {LEAST_IMAGES}", measured)
    assert protected.high is not None
    assert drop.low is not None
    assert drop.high is not None
    if gains_nothing(control):
        return undecided(NOTHING_TO_LOSE, measured)
    if drop.low > 0 and protected.high < EPSILON:
        if drop.count >= AT_CHANCE_IMAGES:
            return Finding(HOLDS, f"with the policy the gain is below {EPSILON:g} dB", measured)
        return Finding(PARTLY, f"the gain falls, and {drop.count} images are too few to call it chance", measured)
    if drop.high < EPSILON:
        return Finding(FAILS, f"the policy takes less than {EPSILON:g} dB of the gain", measured)
    if drop.low > 0:
        return Finding(PARTLY, f"the gain falls, but not surely below {EPSILON:g} dB", measured)
    return undecided("the interval of the drop includes both none and a large one", measured)


def judge_picked(control: tuple[int, int], protected: tuple[int, int], chance: float) -> Finding:
    """Judge whether a policy keeps images from being picked out: how often, of how many, without and with it."""
    if min(control[1], protected[1]) == 0:
        return undecided("a cell was not run", "not run")
    before, after = (rate_interval(*share) for share in (control, protected))
    shown = [
        f"{100 * found / count:.0f}% ({100 * low:.0f}–{100 * high:.0f}%)"
        for (found, count), (low, high) in zip((control, protected), (before, after), strict=True)
    ]
    measured = (
        f"picked out {shown[0]} without, {shown[1]} with the policy, chance {100 * chance:.0f}%, "
        f"n = {control[1]} and {protected[1]}"
    )
    if min(control[1], protected[1]) < AT_CHANCE_IMAGES:
        return undecided(f"fewer than {AT_CHANCE_IMAGES} images", measured)
    if before[0] <= chance:
        return undecided("without a policy images are not surely picked out, so none can be hidden", measured)
    if after[0] > chance:
        return Finding(FAILS, "with the policy images are still surely picked out more often than by chance", measured)
    if after[1] < before[0]:
        return Finding(
            HOLDS, "with the policy they surely are less often, and not surely more often than chance", measured
        )
    return undecided("with the policy it may be chance, or as often as without", measured)


def limit_by_accuracy(finding: Finding, plain: float | None, defended: float | None) -> Finding:
    """Let a policy that costs too much accuracy hold partly at best."""
    if plain is None or defended is None:
        return finding
    cost = plain - defended
    measured = f"{finding.measured}, accuracy {plain:.1f}% → {defended:.1f}%"
    if cost > ACCURACY_COST and finding.verdict == HOLDS:
        return Finding(PARTLY, f"{finding.why}, at a cost of {cost:.1f} points of accuracy", measured)
    return Finding(finding.verdict, finding.why, measured)


def judge_cost(gap: float | None, half: float) -> Finding:
    """Judge whether training loses nothing: the gap in test accuracy in points, ± the error of the test set."""
    if gap is None:
        return undecided("a training was not run", "not run")
    measured = f"test accuracy without less with the policy {gap:+.1f} ± {half:.1f} points"
    if gap + half <= NEGLIGIBLE_COST:
        return Finding(HOLDS, f"surely at most {NEGLIGIBLE_COST:g} points", measured)
    if gap - half > ACCURACY_COST:
        return Finding(FAILS, f"surely more than {ACCURACY_COST:g} points", measured)
    return Finding(PARTLY, f"not surely at most {NEGLIGIBLE_COST:g} points", measured)


def judge_layers(shallow: ClusterInterval | None, deep: ClusterInterval | None) -> Finding:
    """Judge whether a policy hides details and keeps semantics: similarity without less with it, by depth."""
    if shallow is None or deep is None:
        return undecided("an attack was not run", "not run")
    measured = (
        f"similarity without less with the policy {shallow.text(2, signed=True)} in shallow layers, "
        f"{deep.text(2, signed=True)} in deep ones, n = {shallow.count}"
    )
    if shallow.count < LEAST_IMAGES or None in (shallow.low, shallow.high, deep.low, deep.high):
        return undecided(f"{shallow.count} images, fewer than {LEAST_IMAGES}", measured)
    assert shallow.low is not None
    assert shallow.high is not None
    assert deep.low is not None
    assert deep.high is not None
    hidden = shallow.low > 0 and shallow.mean >= SIMILARITY_GAP
    kept = deep.low > -SIMILARITY_GAP and deep.high < SIMILARITY_GAP
    if hidden and kept:
        return Finding(HOLDS, "shallow layers differ and deep ones do not", measured)
    if hidden or kept:
        why = "shallow layers differ, deep ones may too" if hidden else "deep layers are the same, shallow ones may be"
        return Finding(PARTLY, why, measured)
    if shallow.high < SIMILARITY_GAP:
        return Finding(FAILS, f"in shallow layers it surely does not fall by {SIMILARITY_GAP:g}", measured)
    return undecided("the intervals include both no difference and a large one", measured)


def judge_best(shares: Sequence[float], images: int) -> Finding:
    """Judge whether published transformations are the best five: in what shares of resamples each is among them."""
    if not shares or images < LEAST_SCORED:
        return undecided(f"{images} scored images, fewer than {LEAST_SCORED}", f"n = {images} images")
    sure, possible = (sum(share >= least for share in shares) for least in (SURE, POSSIBLE))
    measured = f"of the published five, {sure} surely and {possible} possibly among our best five, n = {images} images"
    if sure == BEST:
        return Finding(HOLDS, "all five surely are", measured)
    if possible <= BEST // 2:
        return Finding(FAILS, f"at most {possible} of five can be", measured)
    return Finding(PARTLY, "some are", measured)


@dataclass(frozen=True)
class Correlation:
    """Pearson's r with its 95% interval (Fisher)."""

    r: float
    low: float
    high: float
    count: int

    def text(self) -> str:
        return f"{self.r:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


def correlate(ours: Sequence[float], theirs: Sequence[float]) -> Correlation | None:
    """Correlate two figures; None for fewer than four pairs, or where one never changes."""
    if len(ours) < 4 or len(set(ours)) == 1 or len(set(theirs)) == 1:
        return None
    found = stats.pearsonr(ours, theirs)
    low, high = found.confidence_interval(0.95)
    return Correlation(float(found.statistic), float(low), float(high), len(ours))


def judge_correlation(raw: Correlation | None, gain: Correlation | None) -> Finding:
    """Judge whether S_pri predicts the attack: its correlation with PSNR, and with PSNR less the chance floor."""
    if raw is None or gain is None:
        return undecided("too few policies were scored and attacked", "not run")
    measured = f"r = {raw.text()} with PSNR, {gain.text()} with PSNR less its floor, {raw.count} policies"
    if raw.count < LEAST_POLICIES:
        return undecided(f"{raw.count} policies, fewer than {LEAST_POLICIES}", measured)
    if raw.low > STRONG and gain.low > STRONG:
        return Finding(HOLDS, f"both are surely above {STRONG:g}", measured)
    if raw.high < WEAK:
        return Finding(FAILS, f"with PSNR it is surely below {WEAK:g}", measured)
    if raw.low > 0:
        return Finding(PARTLY, "with PSNR it is surely above 0, but not both are strong", measured)
    return undecided("the interval includes both none and a strong correlation", measured)


def judge_leak(gain: ClusterInterval | None, least: int = LEAST_IMAGES) -> Finding:
    """Judge whether images leak: dB over wrong updates. An attack that gains nothing shows nothing."""
    if gain is None:
        return undecided("it was not run", "not run")
    measured = f"over wrong updates {gain.text(1, signed=True)} dB, n = {gain.count}"
    if gain.count < least or gain.low is None:
        return undecided(f"{gain.count} images, fewer than {least}", measured)
    if gain.low > 0:
        return Finding(HOLDS, "the update surely gives more than that of another image", measured)
    return undecided("this attack does not surely find more than in wrong updates, and another might", measured)


def judge_difference(difference: ClusterInterval | None, what: str) -> Finding:
    """Judge whether a difference in dB is above 0; `what` says of what."""
    if difference is None:
        return undecided("a part was not run", "not run")
    measured = f"{what} {difference.text(1, signed=True)} dB, n = {difference.count}"
    if difference.count < LEAST_IMAGES or difference.low is None or difference.high is None:
        return undecided(f"{difference.count} images, fewer than {LEAST_IMAGES}", measured)
    if difference.low > 0:
        return Finding(HOLDS, "it is surely above 0", measured)
    if difference.high < 0:
        return Finding(FAILS, "it is surely below 0", measured)
    return undecided("its interval includes 0", measured)


def judge_spread(wide: Sequence[float], narrow: Sequence[float]) -> Finding:
    """Judge whether one spread is larger than another (Levene's test around the median, 5%)."""
    if min(len(wide), len(narrow)) < LEAST_IMAGES:
        return undecided(f"fewer than {LEAST_IMAGES} images", f"n = {len(wide)} and {len(narrow)}")
    test = stats.levene(wide, narrow)
    ratio = math.sqrt(stats.tvar(wide) / stats.tvar(narrow))
    measured = f"standard deviation {ratio:.2f} times as large, p = {test.pvalue:.3f}, n = {len(wide)}, {len(narrow)}"
    if test.pvalue >= 0.05:
        return undecided("the test cannot tell them apart", measured)
    return Finding(HOLDS if ratio > 1 else FAILS, f"it is surely {'larger' if ratio > 1 else 'smaller'}", measured)
