"""The tables of the study of the verdict, from its journal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from gradveil.audit import Rule
from gradveil.experiments.markdown import write_table
from gradveil.experiments.verdict_sequential import LONGEST, POWER, follow_shares
from gradveil.experiments.versions import render_appendix
from gradveil.metrics import ShareTest, holm, rate_interval

Entry = Mapping[str, Any]
LEVELS = (0.05, 0.01, 0.001)
QUIET = ("none-found", "undecided", "untrusted")
FOUND = ("leaks", "some")
NOT_RUN = "Not run yet."


def render_markdown(parts: Mapping[str, Sequence[Entry]]) -> str:
    """Write the page; `parts` has the lines of each part."""
    text = ["# Does the verdict hold?", ""]
    renderers: dict[str, Callable[[Sequence[Entry]], list[str]]] = {
        "false findings": render_false_findings,
        "power": render_power,
        "floors": render_floors,
    }
    for part, render in renderers.items():
        entries = parts.get(part, ())
        text += [*(render(entries) if entries else [f"## {part.capitalize()}", "", NOT_RUN]), ""]
    text += [*render_sequential(), ""]
    return "\n".join([*text, render_appendix([entry for entries in parts.values() for entry in entries])])


def render_false_findings(entries: Sequence[Entry]) -> list[str]:
    steps = entries[0]["steps"]
    withdrawn = sum(cell["unconfirmed"] for entry in entries for cell in entry["cells"])
    return [
        "## False findings",
        "",
        f"{len(entries)} audits in which nothing leaks, each with images, draws and first weights of its own: `fast` "
        f"with {steps} steps on lenet-relu, two arms before and after a brief training. Wrong gradient: the released "
        "update is that of another image with the same label. Noise: of scale 1000. DP-SGD: noise multipliers 30 and "
        "100. Blind guess: three attackers that look at no update answer with the mean colour, the mean image or a "
        "public picture of the class. The rule of `quick` may look at 8 images, of `standard` at 20 (24 where 8 are "
        "aggregated), of `full` at 64. Colour: the first 10 classes of the colour images. Leaks, some images leak: "
        "audits in which any arm, phase and attack was called so, with the exact 95% interval. The other outcomes: "
        "share of arms, phases and attacks. Reached: share of single images, of which 2% may be. p: share of single "
        "images with so small a p-value. Least p alone: audits with a p-value that stands after Holm's correction, "
        "before ε and confirmation are asked for; of these 5% may be.",
        "",
        *write_table(
            (
                "audits",
                "n",
                "leaks",
                "some images leak",
                *("no leak found", "undecided", "not trustworthy"),
                "reached",
                *(f"p ≤ {level:g}" for level in LEVELS),
                "least p alone",
            ),
            [describe_audits(name, group) for name, group in group_audits(entries)],
        ),
        "",
        f"Hits that a second attack took back: {withdrawn}.",
        "",
        "Every configuration:",
        "",
        *write_table(
            ("audits", "n", "leaks", "some images leak"),
            [describe_audits(name, group)[:4] for name, group in cross_audits(entries)],
        ),
    ]


def group_audits(entries: Sequence[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Group all audits, then by each property alone."""
    yield "all", list(entries)
    names: dict[str, Callable[[Entry], str]] = {
        "null": lambda entry: str(entry["trial"]["null"]),
        "data": lambda entry: {"sample": "grey"}.get(entry["trial"]["data"], entry["trial"]["data"]),
        "participants": lambda entry: "1 participant" if entry["trial"]["participants"] == 1 else "8 participants",
        "labels": lambda entry: f"labels {entry['settings']['labels']}",
        "preset": lambda entry: f"rule of `{entry['trial']['preset']}`",
    }
    for name_of in names.values():
        for name in dict.fromkeys(map(name_of, entries)):
            yield name, [entry for entry in entries if name_of(entry) == name]


def cross_audits(entries: Sequence[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Group audits by all properties at once."""
    names = [", ".join(str(entry["trial"][key]) for key in ("null", "data", "preset")) for entry in entries]
    names = [f"{name}, {entry['trial']['participants']}×" for name, entry in zip(names, entries, strict=True)]
    for name in sorted(set(names)):
        yield name, [entry for entry, own in zip(entries, names, strict=True) if own == name]


def describe_audits(name: str, entries: Sequence[Entry]) -> list[str]:
    cells = [cell for entry in entries for cell in entry["cells"]]
    p_values = [value for cell in cells for value in cell["p_values"]]
    found = [sum(any(cell["outcome"] == outcome for cell in entry["cells"]) for entry in entries) for outcome in FOUND]
    quiet = [sum(cell["outcome"] == outcome for cell in cells) / len(cells) for outcome in QUIET]
    reached = sum(cell["reached"] or 0 for cell in cells)
    return [
        name,
        f"{len(entries)}",
        *(write_rate(count, len(entries)) for count in found),
        *(f"{share:.0%}" for share in quiet),
        f"{reached / len(p_values):.2%} of {len(p_values)}",
        *(f"{sum(value <= level for value in p_values) / len(p_values):.2%}" for level in LEVELS),
        write_rate(sum(map(has_small_p, entries)), len(entries)),
    ]


def has_small_p(entry: Entry) -> bool:
    """Tell whether any image of an audit stands after Holm's correction, by its p-value alone."""
    p_values = [value for cell in entry["cells"] for value in cell["p_values"]]
    return any(holm(p_values, Rule().error))


def write_rate(found: int, count: int) -> str:
    """Write a rate with its exact interval.

    >>> write_rate(0, 50)
    '0 (0.0% to 7.1%)'
    """
    low, high = rate_interval(found, count)
    return f"{found} ({low:.1%} to {high:.1%})"


def render_power(entries: Sequence[Entry]) -> list[str]:
    draws = entries[0]["draws"]
    counts = list(dict.fromkeys(draw["images"] for draw in draws))
    keys = [(cell["arm"], cell["phase"]) for cell in entries[0]["cells"]]
    pool = len(entries[0]["cells"][0]["rows"])
    each = sum(draw["images"] == counts[0] for draw in draws)
    return [
        "## Power",
        "",
        f"`fast` at its full strength on lenet-relu and the bundled sample. {pool} images were attacked once for each "
        f"of {len(entries)} seeds, and {each} audits of n images each were drawn from them, with all {len(keys)} arms "
        "and phases together; a hit was not confirmed by another attack. The audits of a seed share images: the rates "
        "at n = 32 vary less than with new images. Reached: share of the single images that were reached. Leaks / "
        "found: share of audits that say leaks, and that say leaks or some images leak.",
        "",
        *write_table(
            ("arm", "phase", "median advantage, dB", "reached", *(f"n = {n}: leaks / found" for n in counts)),
            [describe_power(place, key, counts, entries) for place, key in enumerate(keys)],
        ),
    ]


def describe_power(place: int, key: tuple[str, str], counts: Sequence[int], entries: Sequence[Entry]) -> list[str]:
    rows = [row for entry in entries for row in entry["cells"][place]["rows"] if row["reached"] is not None]
    gains = [max(row["advantage_transformed"], row["advantage_original"]) for row in rows]
    found = []
    for count in counts:
        outcomes = [draw["outcomes"][place] for entry in entries for draw in entry["draws"] if draw["images"] == count]
        leaks = outcomes.count("leaks") / len(outcomes)
        some = outcomes.count("some") / len(outcomes)
        found.append(f"{leaks:.0%} / {leaks + some:.0%}")
    reached = sum(row["reached"] for row in rows) / len(rows)
    return [f"`{key[0]}`", key[1], f"{median(gains):+.1f}", f"{reached:.0%} of {len(rows)}", *found]


def render_floors(entries: Sequence[Entry]) -> list[str]:
    held_out, pairing = [], []
    for entry in entries:
        name = [entry["trial"]["data"], f"{entry['trial']['seed']}"]
        made = entry["held_out"]
        held_out.append(
            [*name, *(text for when in ("before", "now") for text in (made[when]["kind"], write_gain(made[when])))]
        )
        for line in entry["pairing"]:
            pairing.append(
                [*name, f"{line['round']}", line["floor"], write_gain(line["unpaired"]), write_gain(line["advantage"])]
            )
    return [
        "## Floors",
        "",
        "Gain of the chosen guess over the mean image on test images, which had no part in it, in dB (mean and 95% "
        "interval over images). Before: class means of 2,000 images, chosen on 256 of the same. Now: a number that "
        "grows with the classes, chosen on other images.",
        "",
        *write_table(("data", "seed", "before: kind", "before", "now: kind", "now"), held_out),
        "",
        "Advantage of public pictures that saw no update, paired with the true images as an attack's are, in dB, "
        "labels unknown: over a floor without pairing, and over the floor as it is now. It must not be above 0.",
        "",
        *write_table(("data", "seed", "images in a round", "floor", "over a floor without pairing", "now"), pairing),
    ]


def render_sequential() -> list[str]:
    test = ShareTest(Rule().delta)
    rows = [
        [
            f"{one.share:.0%}",
            f"{one.above:.1%}",
            f"{one.below:.1%}",
            f"{one.images:.1f}",
            "–" if one.fixed is None else f"{one.fixed}",
        ]
        for one in follow_shares(test)
    ]
    return [
        "## Images that the sequential test needs",
        "",
        f"The test whether more than {test.share:.0%} of all images are reached, each answer with an error of "
        f"{test.error_above:.0%}, computed over all runs of up to {LONGEST} images. Fixed: the number of images of an "
        f"exact binomial test with a power of {POWER:.0%}, planned for just that share.",
        "",
        *write_table(("true share", "answers above", "answers below", "images, mean", "fixed"), rows),
    ]


def write_gain(found: Mapping[str, float]) -> str:
    return f"{found['mean']:+.2f} ({found['low']:+.2f} to {found['high']:+.2f}), n = {found['count']}"
