"""Does a policy hide the original from someone who knows it? The page, from the lines of its table."""

from collections import Counter
from collections.abc import Sequence

from gradveil.audit import VERSIONS
from gradveil.errors import SettingsError
from gradveil.experiments.hide_lines import COLUMNS, Entry, HideLine, make_lines
from gradveil.experiments.markdown import write_table
from gradveil.experiments.policies_hide import ATTACKS, LEARNED, PHASES, RANDOM, trials
from gradveil.experiments.versions import CHOICE, CHOICES, KEY, name_makers

GLANCE = ("model", "arm", "accuracy on plain test images", *(f"`{attack}`" for attack in ATTACKS), "swapped")
RANDOM_POLICIES = "random policies"
READING = (
    "At a glance: how often the true image is picked out of 20 of its class (chance 5%), before → after training, and "
    "the same for swapped updates. The random policies are one row, from the least to the most."
)


def render_markdown(entries: Sequence[Entry]) -> str:
    """Write the table, how to read it, what is missing, and where it comes from."""
    lines = make_lines(entries)
    notes = dict.fromkeys((line.aligned.clusters, line.aligned.note) for line in lines if line.aligned.note)
    return "\n".join(
        [
            "# Does a policy hide the original from someone who knows it?",
            "",
            *describe_study(entries),
            "",
            *(f"Note on rows with {seeds} seed{'s' if seeds > 1 else ''}: {note}." for seeds, note in notes),
            "",
            READING,
            "",
            *write_table(GLANCE, glance_rows(lines)),
            "",
            "All of it:",
            "",
            *write_table(COLUMNS, [line.texts() for line in lines]),
            "",
            *describe_missing(entries),
            "",
            "## Where these figures come from",
            "",
            name_versions(entries),
            "",
            *name_makers(entries),
            "",
        ]
    )


def glance_rows(lines: Sequence[HideLine]) -> list[list[str]]:
    """Put the attacks on an arm in one row, and all random policies in one."""
    groups: dict[tuple[str, str], list[HideLine]] = {}
    for line in lines:
        label = RANDOM_POLICIES if line.cell.arm in RANDOM else f"`{line.cell.arm}`"
        groups.setdefault((line.cell.model, label), []).append(line)
    models = list(dict.fromkeys(model for model, _ in groups))
    ordered = sorted(groups.items(), key=lambda group: models.index(group[0][0]))
    return [glance_row(model, label, own) for (model, label), own in ordered]


def glance_row(model: str, label: str, lines: Sequence[HideLine]) -> list[str]:
    arms = len({line.cell.arm for line in lines})
    accuracies = [sum(line.accuracies) / len(line.accuracies) for line in lines]
    return [
        f"`{model}`",
        f"{label}: {arms}" if label == RANDOM_POLICIES else label,
        span(accuracies),
        *(picked([line for line in lines if line.cell.attack == attack]) for attack in ATTACKS),
        span([float(line.swapped_identified) for line in lines]),
    ]


def picked(lines: Sequence[HideLine]) -> str:
    """Write how often the image is picked out before and after training."""
    if not lines:
        return "not run"
    before, after = (span([float(line.identified) for line in lines if line.cell.phase == phase]) for phase in PHASES)
    counts = sorted(line.identified.count for line in lines)
    return f"{before} → {after} (n {'=' if counts[0] == counts[-1] else '≥'} {counts[0]})"


def span(values: Sequence[float]) -> str:
    """Write shares from the least to the most.

    >>> span([0.5]), span([0.16, 0.38])
    ('50%', '16–38%')
    """
    if not values:
        return "–"
    low, high = (f"{100 * value:.0f}" for value in (min(values), max(values)))
    return f"{low}%" if low == high else f"{low}–{high}%"


def describe_study(entries: Sequence[Entry]) -> list[str]:
    """Say how to read the table."""
    study = entries[0]["study"]
    shares = {entry["trial"]["model"]: entry["trial"] for entry in entries}
    numbers = "; ".join(
        f"`{model}`: {trial['public']:,} public images, {trial['private']:,} others that the clients train on"
        for model, trial in shares.items()
    )
    first = any(entry["study"].get(LEARNED) == 1 for entry in entries)
    crowd = "the other attacked images of its class (chance one in 19)" if first else "20 of its class (chance 5%)"
    return [
        f"{study['data']}, {study['training']['epochs']} epochs; {numbers}. Test images are attacked, one gradient of "
        "one image each. The attacker knows the arm, not its draws. `learned` learns from the public images what "
        "clients release; `matching` is the recipe `fast`; `both` matches gradients from the learnt picture on, "
        "looking for the original through every draw of a known policy. Gains are over the best guess without an "
        'update, in dB, mean ± half the 95% interval. "As it lies" compares pixel by pixel; "aligned" after the best '
        "flip, shift and lighting. Picked out: of 20 images of its class the true one fits best, by the aligned score; "
        "chance 5%; in brackets the exact 95% interval, as if all images were independent.",
        "",
        "Swapped is the wrong-gradient control: the picture rebuilt from an update against the next attacked image of "
        f"the class, its aligned gain over the class mean, and how often that image is picked out of {crowd}. "
        "A policy stands on top of crop and flip unless it says `no-base`.",
    ]


def describe_missing(entries: Sequence[Entry]) -> list[str]:
    """Say how many trials of the plan were not run."""
    fields = ("arm", "seed", "attack", "model")
    done = {tuple(entry["trial"][name] for name in fields) for entry in entries}
    missing = Counter(
        (one.model, one.attack) for one in trials() if tuple(getattr(one, name) for name in fields) not in done
    )
    if not missing:
        return ["Every trial of the plan was run."]
    return [
        "Not run (an arm with one seed is a trial): "
        + ", ".join(f"{count} of `{model}` with {attack}" for (model, attack), count in missing.items())
        + "."
    ]


def name_versions(entries: Sequence[Entry]) -> str:
    """Say which versions the table is of; lines of several versions are refused."""
    told = {
        name: {entry["study"][name] for entry in entries if name in entry["study"]} for name in (KEY, CHOICE, LEARNED)
    }
    several = [name for name, found in told.items() if len(found) > 1]
    if several:
        raise SettingsError(
            f"lines of several versions ({', '.join(several)}): a table shows one, so move the others to a folder of "
            "their own"
        )
    (audit,), (choice,) = told[KEY], told[CHOICE]
    learned = f" `learned`: version {told[LEARNED].pop()}." if told[LEARNED] else ""
    return f"Audit version {audit}: {VERSIONS[audit]}. Image choice {choice}: {CHOICES[choice]}.{learned}"
