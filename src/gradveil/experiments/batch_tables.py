"""What is rebuilt of batches and of several local steps: the table, from the journal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.experiments.batches import MODELS, PHASES, RATE, cells
from gradveil.experiments.markdown import write_table

COLUMNS = (
    "model",
    "mode",
    "phase",
    "images in an update",
    "counted off it",
    "best attack",
    "n",
    "rebuilt beyond chance",
    "advantage at T(x), dB",
    "PSNR, dB",
    "picked out",
    "the others",
)
Entry = Mapping[str, Any]
Place = tuple[str, str, str, int, int]


@dataclass(frozen=True)
class BatchLine:
    """All attacks on one kind of update, the best first; refusals and failures come last."""

    place: Place
    entries: tuple[Entry, ...]

    @property
    def model(self) -> str:
        return self.place[0]

    def texts(self) -> list[str]:
        model, phase, mode, batch, steps = self.place
        best, summary = self.entries[0], self.entries[0]["summary"]
        kind = f"{batch}" if steps == 0 else f"{batch}, {steps} step{'' if steps == 1 else 's'}"
        figures, found = summary["figures"], summary["identification"]
        others = ", ".join(f"`{one['cell']['attack']}` {brief(one)}" for one in self.entries[1:])
        return [
            model,
            mode if len(MODELS[model]) > 1 else "either",
            "untrained" if phase == "init" else f"trained, {100 * best['test_accuracy']:.0f}%",
            kind,
            # The change of several steps is no sum over the images.
            count_text(best["counted"]) if steps <= 1 else "–",
            f"`{best['cell']['attack']}`" if figures else "none",
            f"{summary['images']}" + (f", {summary['failed']} failed" if summary["failed"] else ""),
            brief(best),
            interval(figures["advantage_transformed"]) if figures else "–",
            interval(figures["psnr_transformed"], signed=False) if figures else "–",
            f"{found['found']} of {found['images']}" if found else "–",
            others or "–",
        ]

    def brief(self) -> str:
        """Say what the best attack rebuilds."""
        best = self.entries[0]
        found = best["summary"]["share"]
        return "fails" if found is None else f"{found['reached']} by `{best['cell']['attack']}`"


def brief(entry: Entry) -> str:
    """Say how many images were rebuilt, or why there is no answer."""
    share, summary = entry["summary"]["share"], entry["summary"]
    if entry["refused"]:
        return "refuses"
    if share is None:
        return "fails"
    return f"{share['reached']} of {summary['images']}"


def score(entry: Entry) -> tuple[float, float]:
    """Rank attacks by the images that they rebuild, then by their advantage; what gave no result comes last."""
    share, figures = entry["summary"]["share"], entry["summary"]["figures"]
    if share is None or not figures:
        return (-1.0, 0.0)
    return (share["reached"], figures["advantage_transformed"]["mean"])


def count_text(counted: Sequence[int]) -> str:
    """Write what ranks the updates have.

    >>> count_text([8, 8]), count_text([6, 8, 7])
    ('8', '6–8')
    """
    low, high = min(counted), max(counted)
    return f"{low}" if low == high else f"{low}–{high}"


def interval(figure: Mapping[str, Any], signed: bool = True) -> str:
    """Write a mean with half its interval, where there is one."""
    mean = f"{figure['mean']:+.1f}" if signed else f"{figure['mean']:.1f}"
    return mean if figure["low"] is None else f"{mean} ± {(figure['high'] - figure['low']) / 2:.1f}"


def place_of(entry: Entry) -> Place:
    cell = entry["cell"]
    return (cell["model"], cell["phase"], cell["mode"], cell["batch"], cell["steps"] or 0)


def make_lines(entries: Sequence[Entry]) -> list[BatchLine]:
    """Put the attacks on each kind of update together: single gradients by their size, then several steps."""
    places: dict[Place, list[Entry]] = {}
    for entry in entries:
        places.setdefault(place_of(entry), []).append(entry)
    lines = [BatchLine(place, tuple(sorted(own, key=score, reverse=True))) for place, own in places.items()]
    return sorted(lines, key=lambda line: order_of(line.place))


def order_of(place: Place) -> tuple[bool, int, str, int, int, int]:
    model, phase, mode, batch, steps = place
    return (steps > 0, list(MODELS).index(model), mode, -list(map(str, PHASES)).index(phase), batch, steps)


def make_grid(lines: Sequence[BatchLine]) -> tuple[list[str], list[list[str]]]:
    """Set the best attack on each kind of update in one row for each network, mode and phase; titles come first."""
    kinds = sorted({line.place[3:] for line in lines}, key=lambda kind: (kind[1], kind[0]))
    rows: dict[tuple[str, ...], dict[tuple[int, ...], str]] = {}
    titles: dict[tuple[int, ...], str] = {}
    for line in lines:
        model, mode, phase, kind = line.texts()[:4]
        rows.setdefault((model, mode, phase), {})[line.place[3:]] = line.brief()
        titles[line.place[3:]] = kind
    columns = ["model", "mode", "phase", *(titles[kind] for kind in kinds)]
    return columns, [[*row, *(found.get(kind, "not run") for kind in kinds)] for row, found in rows.items()]


def missing(entries: Sequence[Entry]) -> Iterator[str]:
    """Name the cells that were not run, those of an attack on a model in one mode and phase together."""
    known = {(*place_of(entry), entry["cell"]["attack"]) for entry in entries}
    lacking: dict[str, list[str]] = {}
    for cell in cells():
        if (*cell.place, cell.attack) not in known:
            phase = "untrained" if cell.phase == "init" else "trained"
            kind = (
                f"{cell.batch}"
                if cell.steps is None
                else f"{cell.batch} in {cell.steps} step{'' if cell.steps == 1 else 's'}"
            )
            lacking.setdefault(f"`{cell.attack}` on {cell.model}, {phase}, {cell.mode} mode", []).append(kind)
    for name, kinds in lacking.items():
        yield f"- {name}: {', '.join(kinds)}"


def render_markdown(lines: Sequence[BatchLine], entries: Sequence[Entry]) -> str:
    """Write the table, and what it lacks."""
    study, images = entries[0]["study"], entries[0]["cell"]["images"]
    not_run = list(missing(entries))
    text = [
        "# Batches and local steps",
        "",
        f"{study['data']}, seed 0; trained: {study['training']['epochs']} epochs. {images} test images in each row, "
        "dealt to clients that have as many as the row says. A client releases one gradient of them, or the weight "
        f"change of so many steps of plain SGD at rate {RATE}, each on all of its images. No defence; the labels are "
        "known. Rebuilt beyond chance: the audit's own rule, image by image, against guesses and other images that are "
        "paired as freely as what was rebuilt. The advantage is over the best guess without an update, aligned. Picked "
        "out: of 20 images of its class the true one fits best; chance 5%. Means are ± half the 95% interval over "
        "images. The best attack is the one that rebuilds most, by the truth: this favours the attacker. Counted off "
        "it: the largest rank of a linear layer's gradient; after several steps it can exceed the number of images. "
        "Means leave out images whose attack failed; the shares rebuilt count them as not rebuilt.",
        "",
        f"At a glance, by images in an update: how many of {images} are rebuilt beyond chance by the best attack.",
        "",
        *write_table(*make_grid(lines)),
        "",
        "All of it:",
        "",
        *write_table(COLUMNS, [line.texts() for line in lines]),
        "",
        *(["Not run:", "", *not_run, ""] if not_run else []),
    ]
    return "\n".join(text)
