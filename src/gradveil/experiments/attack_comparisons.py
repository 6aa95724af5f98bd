"""Which attack wins where, and by how much one beats another on the same images."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradveil.experiments.attack_tables import AttackLine, write_figure
from gradveil.metrics import Interval, mean_interval

Place = tuple[str, ...]
Comparison = tuple[str, Sequence[str], str]
COMPARED: dict[str, Comparison] = {
    "speed": ("adam-cosine", ("fast", "strong"), "psnr_transformed"),
    "policy": ("class-mean", ("fast", "policy-aware"), "psnr_original"),
}
"""For each part the control, what is held against it, and by which figure."""
GAIN_COLUMNS = ("data", "model", "phase", "arm", "attack", "gain, dB", "n", "share of the control's time")
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
                    yield [*place, name, write_figure(found, signed=True), str(found.count), f"{share:.2f}"]


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Interval | None:
    shared = sorted(ours.keys() & theirs.keys())
    return mean_interval([ours[image] - theirs[image] for image in shared]) if shared else None


def winners(lines: Sequence[AttackLine], best: Sequence[str]) -> Iterator[list[str]]:
    """Name the attack with the highest mean advantage: of those with many images, and of all on what all have."""
    for (data, model, phase, _), attacks in places(lines).items():
        scores = {name: line.scores("advantage_transformed") for name, line in attacks.items()}
        leading, count = describe(ranked({name: values for name, values in scores.items() if name in best}))
        overall, shared = describe(ranked(scores))
        yield [data, model, phase, *leading[0], count, *overall[0], " ".join(overall[1]), shared]


def describe(ranking: Sequence[tuple[str, Interval]]) -> tuple[list[tuple[str, str]], str]:
    """Write the first two attacks of a ranking with their advantages, and over how many images it was made."""
    texts = [(f"`{name}`", write_figure(figure, signed=True)) for name, figure in ranking[:2]]
    return [*texts, ("–", "–"), ("–", "–")], str(ranking[0][1].count) if ranking else "0"


def ranked(scores: Mapping[str, Mapping[int, float]]) -> list[tuple[str, Interval]]:
    """Rank attacks by their mean over the images that all of them have."""
    shared = set.intersection(*(set(values) for values in scores.values())) if scores else set()
    if not shared:
        return []
    means = {name: mean_interval([values[image] for image in sorted(shared)]) for name, values in scores.items()}
    return sorted(means.items(), key=lambda item: -item[1].mean)


def render_comparisons(parts: Mapping[str, Sequence[AttackLine]], best: Sequence[str]) -> str:
    """Write the comparisons of every part that has any."""
    text = []
    for part, lines in parts.items():
        if part in COMPARED:
            control, _, figure = COMPARED[part]
            target = "T(x)" if figure == "psnr_transformed" else "x"
            text += [f"## {part}: PSNR of {target} against `{control}`, image by image", ""]
            text += [*render_table(GAIN_COLUMNS, gains(lines, COMPARED[part])), ""]
        if part == "budget":
            text += ["## Which attack wins where", "", *render_table(WINNER_COLUMNS, winners(lines, best)), ""]
    return "\n".join(text)


def render_table(columns: Sequence[str], rows: Iterator[list[str]]) -> list[str]:
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return [*head, *("| " + " | ".join(row) + " |" for row in rows)]


def render_models(entries: Sequence[Mapping[str, Any]]) -> str:
    """Write what the attacked weights had learnt."""
    known = {
        (cell["data"], cell["model"], cell["phase"]): entry["test_accuracy"]
        for entry in entries
        if "test_accuracy" in entry and (cell := entry["cell"])
    }
    rows = ([*place, f"{100 * accuracy:.1f}"] for place, accuracy in sorted(known.items()))
    return "\n".join(["## The models", "", *render_table(("data", "model", "phase", "test accuracy, %"), rows), ""])
