"""Write what the harness found into the page, between its marks."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradveil.journal import Journal
from gradveil.results import write_file

Line = dict[str, Any]
Lines = Sequence[Line]
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
REAL = "python -m gradveil"


def last_lines(lines: Lines, *keys: str) -> list[Line]:
    """Keep the last line of each trial: what failed is tried again, in the same way, once it is mended."""
    return list({tuple(str(line.get(key)) for key in keys): line for line in lines}.values())


def write_rows(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lay out a table."""
    texts = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *texts)]


def group(lines: Lines, key: str) -> dict[str, list[Line]]:
    found: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        found[line[key]].append(line)
    return dict(found)


def sum_of(lines: Lines, key: str) -> int:
    return sum(int(line[key]) for line in lines)


def worst_of(lines: Lines, key: str) -> str:
    """Return the first fault, or the longest time."""
    found = [line["faults"] if "input" in line else [line["fault"]] for line in lines]
    faults = [fault for one in found for fault in one if fault]
    return shorten(faults[0]) if faults else f"{max((line[key] for line in lines), default=0):.1f} s"


def shorten(fault: str) -> str:
    """Write a fault on one short line, for a table."""
    return " ".join(fault.replace("|", "/").split())[:120]


def fuzzed(journals: Mapping[str, Lines]) -> list[str]:
    """Write one line for each class of inputs, and their sum."""
    lines = journals["journal"]
    counts = ("tried", "read", "refused", "failed")
    rows: list[list[object]] = [
        [name, *(sum_of(own, key) for key in counts), worst_of(own, "slowest")]
        for name, own in group(lines, "input").items()
    ]
    rows.append(["**all**", *(f"**{sum_of(lines, key):,}**" for key in counts), ""])
    return write_rows(("input", "tried", "read", "refused in one line", "neither", "worst case"), rows)


def corrupted(journals: Mapping[str, Lines]) -> list[str]:
    """Write one line for each format, and their sum."""
    lines = journals["corrupted"]
    rows: list[list[object]] = []
    for name, own in [*group(lines, "format").items(), ("**all**", lines)]:
        found = Counter(line["outcome"] for line in own)
        rescued = sum(bool(line.get("rescued")) for line in own)
        counts = [found["same"], found["not read"], found["refused"], rescued, found["fault"]]
        rows.append([name, len(own), *counts, worst_of(own, "seconds")])
    heads = (
        "format",
        "damaged",
        "same result",
        "not needed",
        "refused, file named",
        "begun anew",
        "neither",
        "worst case",
    )
    return write_rows(heads, rows)


def killed(journals: Mapping[str, Lines]) -> list[str]:
    """Write one line for each command and kind of fault, and the sums of the signals."""
    lines = journals["kills"]
    rows: list[list[object]] = []
    for name, own in group(lines, "command").items():
        for kind in (SIGNALS, *sorted({line["faults"][0] for line in own} - {*SIGNALS})):
            rows += count_cuts(name, kind, own)
    signals = [line for line in lines if line["faults"][0] in SIGNALS]
    rows += count_cuts("**all**", SIGNALS, signals)
    heads = ("command", "fault", "faults that came in time", "trials", "same result", "otherwise", "worst case")
    return write_rows(heads, rows)


def count_cuts(name: str, kind: tuple[str, ...] | str, lines: Lines) -> list[list[object]]:
    """Count the trials of one kind of fault; the signals count as one kind."""
    wanted = kind if isinstance(kind, tuple) else (kind,)
    own = [line for line in lines if line["faults"][0] in wanted]
    if not own:
        return []
    bad = [line for line in own if line["fault"]]
    slowest = max(line["slowest_end"] for line in own)
    worst = shorten(bad[0]["fault"]) if bad else (f"ends {slowest:.1f} s after the signal" if slowest else "–")
    text = ", ".join(wanted)
    return [[name, text, sum_of(own, "kills"), len(own), len(own) - len(bad), len(bad), worst]]


def loaded(journals: Mapping[str, Lines]) -> list[str]:
    """Write one line for each size of work."""
    heads = ("work", "units", "seconds", "peak memory", "growth per unit", "page", "opens in")
    rows = [
        [
            line["work"],
            line["units"],
            f"{line['seconds']:.0f}",
            f"{line['peak_megabytes']:.0f} MB",
            f"{line['growth_kilobytes']:.1f} kB",
            f"{1024 * line['page_megabytes']:.0f} kB",
            f"{line['opens_seconds']:.1f} s",
        ]
        for line in journals["load"]
    ]
    return write_rows(heads, rows)


def summary(journals: Mapping[str, Lines]) -> list[str]:
    """Write one line for each class of faults: how many were tried, how many survived, and the worst case."""
    rows: list[list[object]] = []
    inputs, files, cuts = journals["journal"], journals["corrupted"], journals["kills"]
    if inputs:
        tried = sum_of(inputs, "tried")
        rows.append(["malformed inputs", tried, tried - sum_of(inputs, "failed"), worst_of(inputs, "slowest")])
    if files:
        good = sum(line["outcome"] != "fault" for line in files)
        rows.append(["damaged files", len(files), good, worst_of(files, "seconds")])
    for name in dict.fromkeys([*SIGNALS, *(line["faults"][0] for line in cuts)]):
        rows += count_kind(name, cuts)
    return write_rows(("fault or input", "tried", "survived", "worst case"), rows)


def count_kind(name: str, lines: Lines) -> list[list[object]]:
    """Count one kind of fault; in a trial with several signals each that came in time counts for itself."""
    own = [line for line in lines if name in line["faults"][: max(1, line["kills"])]]
    tried = sum(line["faults"][: line["kills"]].count(name) for line in own)
    lost = sum(line["faults"][: max(1, line["kills"])].count(name) for line in own if line["fault"])
    if not tried:
        return []
    slowest = max(line["slowest_end"] for line in own)
    usual = f"ends after {slowest:.1f} s" if name in SIGNALS[1:] else "–"
    worst = next((shorten(line["fault"]) for line in own if line["fault"]), usual)
    return [[name, tried, tried - lost, worst]]


SECTIONS: dict[str, tuple[str, Callable[[Mapping[str, Lines]], list[str]]]] = {
    "summary": ("journal", summary),
    "fuzzed": ("journal", fuzzed),
    "corrupted": ("corrupted", corrupted),
    "killed": ("kills", killed),
    "loaded": ("load", loaded),
}


def read_journals(folder: Path) -> dict[str, Lines]:
    """Read the journals that are there, and keep the last line of each trial."""
    keys = {
        "journal": ("input", "seed"),
        "corrupted": ("seed",),
        "kills": ("seed", "kind"),
        "load": ("work",),
    }
    found = {name: Journal(folder / f"{name}.jsonl").read() for name in keys}
    # The first lines were of signals alone and did not say so.
    found["kills"] = [{"kind": "signals", **line} for line in found["kills"]]
    return {name: last_lines(lines, *keys[name]) for name, lines in found.items()}


def write_tables(folder: Path, page: Path) -> None:
    """Put every table into the page, each between its marks."""
    journals, text = read_journals(folder), page.read_text()
    place = folder.relative_to(page.parent.resolve())
    for name, (journal, make) in SECTIONS.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        lines = journals[journal]
        if lines and begin in text:
            before, after = text.partition(begin)[0], text.partition(end)[2]
            note = describe(name, lines, f"{place}/{journal}.jsonl")
            text = "\n".join([before + begin, *make(journals), "", note, end]) + after
    write_file(page, text)


def describe(name: str, lines: Lines, journal: str) -> str:
    """Say what the worst case is, where the lines are, and what made them."""
    made = lines[-1]["made_by"]
    words = {
        "summary": "Survived: read or refused in one line, or the same result as undisturbed.",
        "fuzzed": "Worst case: the longest time that one input took, on a busy machine. Peak memory "
        f"{max((line.get('peak_megabytes', 0) for line in lines), default=0):,} MB.",
        "corrupted": "Worst case: the longest time of a trial, on a busy machine.",
        "killed": f"{sum(line['kills'] for line in lines if line.get('process') == REAL):,} of the faults met "
        f"`{REAL}`, the others a process forked from one that has imported all.",
        "loaded": "One process, one thread, on a busy machine. Growth: a line through the memory after the first tenth "
        "of the work. Opens in: the quickest of three openings, with the start of the browser.",
    }[name]
    software = f"gradveil {made['gradveil']}, torch {made['torch']}, {made['cores']} cores of {made['processor']}"
    return f"{words} {software}; journal: `{journal}`."
