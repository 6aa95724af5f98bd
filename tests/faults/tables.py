"""Write what the harness found into the page."""


def make_table(lines: list[dict[str, Any]]) -> list[str]:
    """Write one line for each class of inputs, and their sum."""
    grouped: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        grouped[line["input"]].append(line)
    rows = ["| input | tried | read | refused in one line | neither | worst case |", "|---|---|---|---|---|---|"]
    for name, own in grouped.items():
        counts = [sum(line[key] for line in own) for key in ("tried", "read", "refused", "failed")]
        fault = next((fault for line in own for fault in line["faults"]), None)
        worst = fault or f"{max(line['slowest'] for line in own):.1f} s"
        rows.append(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} | {worst} |")
    total = [sum(line[key] for line in lines) for key in ("tried", "read", "refused", "failed")]
    rows.append(f"| **all** | {' | '.join(f'**{count:,}**' for count in total)} | |")
    return rows


def table(folder: Path, page: Path) -> None:
    """Put the table of a journal into a page, between its marks."""
    lines = Journal(folder / "journal.jsonl").read()
    made = lines[-1]["made_by"]
    note = (
        f"\nWorst case: the longest time that one input took, on a busy machine. Peak memory "
        f"{max(line['peak_megabytes'] for line in lines):,} MB. gradveil {made['gradveil']}, torch {made['torch']}, "
        f"one core of {made['processor']}; journal: `{folder.relative_to(page.parent.resolve())}/journal.jsonl`."
    )
    text = page.read_text()
    before, after = text.partition(START)[0], text.partition(END)[2]
    write_file(page, "\n".join([before + START, *make_table(lines), note, END]) + after)
