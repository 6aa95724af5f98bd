"""Which attack wins where, and by how much one beats another on the same images."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradveil.experiments.attack_tables import MODEL, AttackLine
from gradveil.experiments.markdown import write_table
from gradveil.experiments.old_rows import compare, write_figure
from gradveil.metrics import ClusterInterval, cluster_interval, paired_interval

Place = tuple[str, ...]
Comparison = tuple[str, Sequence[str], str]
COMPARED: dict[str, tuple[Comparison, ...]] = {
    "speed": (("adam-cosine", ("fast", "strong"), "psnr_transformed"),),
    "policy": (
        ("class-mean", ("fast", "policy-aware"), "psnr_original"),
        ("fast", ("policy-aware",), "advantage_aligned"),
    ),
}
"""For each part the controls, what is held against each, and by which figure."""
FIGURES = {
    "psnr_transformed": "PSNR of T(x)",
    "psnr_original": "PSNR of x",
    "advantage_aligned": "advantage at aligned x",
}
GAIN_COLUMNS = ("data", "model", "phase", "arm", "attack", "gain, dB", "median", "n", "share of the control's time")
WINNER_COLUMNS = ("data", "model", "phase", "best of three", "advantage", "n", "best of all", "advantage", "next", "n")


def places(lines: Sequence[AttackLine]) -> dict[Place, dict[str, AttackLine]]:
    """Put the lines of the attacks on the same thing together, those of which anything was run."""
    found: dict[Place, dict[str, AttackLine]] = defaultdict(dict)
    for line in lines:
        if line.scores("psnr_transformed"):
            found[line.key[1:5]][line.key[5]] = line
    return found


def gains(lines: Sequence[AttackLine], comparison: Comparison) -> Iterator[list[str]]:
    """Compare attacks with their control image by image; only images that both have count."""
    control, others, figure = comparison
    for place, attacks in places(lines).items():
        for name in others:
            if control in attacks and name in attacks:
                theirs, ours = attacks[control], attacks[name]
                found = paired(ours.scores(figure), theirs.scores(figure))
                if found is not None:
                    share = ours.seconds / theirs.seconds
                    median = f"{found.median:+.1f}"
                    yield [*place, name, compare(found), median, str(found.count), f"{share:.2f}"]


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> ClusterInterval | None:
    """Compare two attacks on the images that both have; all are attacked on one model."""
    first, second = ({(MODEL, image): score for image, score in scores.items()} for scores in (ours, theirs))
    return paired_interval(first, second)


def winners(lines: Sequence[AttackLine], best: Sequence[str]) -> Iterator[list[str]]:
    """Name the attack with the highest mean advantage: of those with many images, and of all on what all have."""
    for (data, model, phase, _), attacks in places(lines).items():
        scores = {name: line.scores("advantage_transformed") for name, line in attacks.items()}
        leading, count = describe(ranked({name: values for name, values in scores.items() if name in best}))
        overall, shared = describe(ranked(scores))
        yield [data, model, phase, *leading[0], count, *overall[0], " ".join(overall[1]), shared]


def describe(ranking: Sequence[tuple[str, ClusterInterval]]) -> tuple[list[tuple[str, str]], str]:
    """Write the first two attacks of a ranking with their advantages, and over how many images it was made."""
    texts = [(f"`{name}`", write_figure(figure, signed=True)) for name, figure in ranking[:2]]
    return [*texts, ("–", "–"), ("–", "–")], str(ranking[0][1].count) if ranking else "0"


def ranked(scores: Mapping[str, Mapping[int, float]]) -> list[tuple[str, ClusterInterval]]:
    """Rank attacks by their mean over the images that all of them have."""
    shared = set.intersection(*(set(values) for values in scores.values())) if scores else set()
    if not shared:
        return []
    ones = [MODEL] * len(shared)
    means = {
        name: cluster_interval([scored[image] for image in sorted(shared)], ones) for name, scored in scores.items()
    }
    return sorted(means.items(), key=lambda item: -item[1].mean)


def render_comparisons(parts: Mapping[str, Sequence[AttackLine]], best: Sequence[str]) -> str:
    """Write the comparisons of every part that has any."""
    text = []
    for part, lines in parts.items():
        for comparison in COMPARED.get(part, ()):
            rows = list(gains(lines, comparison))
            if rows:
                control, _, figure = comparison
                text += [f"## {part}: {FIGURES[figure]} against `{control}`, image by image", ""]
                text += [*write_table(GAIN_COLUMNS, rows), ""]
        if part == "budget":
            text += ["## Which attack wins where", "", *write_table(WINNER_COLUMNS, winners(lines, best)), ""]
    return "\n".join(text)


def render_models(entries: Sequence[Mapping[str, Any]]) -> str:
    """Write what the attacked weights had learnt."""
    known = {
        (cell["data"], cell["model"], cell["phase"]): entry["test_accuracy"]
        for entry in entries
        if "test_accuracy" in entry and (cell := entry["cell"])
    }
    rows = ([*place, f"{100 * accuracy:.1f}"] for place, accuracy in sorted(known.items()))
    return "\n".join(["## The models", "", *write_table(("data", "model", "phase", "test accuracy, %"), rows), ""])
