"""Print the README's table from the audits that are kept in docs/measured/audit."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "measured" / "audit"
HEAD = "| phase | arm | PSNR at T(x) | floor | advantage at T(x) | advantage, aligned x | worst image |"


def read_summaries(seed: int) -> list[dict[str, Any]]:
    """Read what an audit with this seed found."""
    record = json.loads((FOLDER / f"seed-{seed}.json").read_text())
    summaries: list[dict[str, Any]] = record["summaries"]
    return summaries


def write_interval(figure: dict[str, Any], sign: str = "") -> str:
    return f"{figure['mean']:{sign}.1f} ± {figure['high'] - figure['mean']:.1f}"


def make_table(seed: int) -> list[str]:
    """Make the lines of the table."""
    lines = [HEAD, "|---|---|---|---|---|---|---|"]
    for summary in read_summaries(seed):
        figures = summary["figures"]
        cells = [
            summary["phase"],
            f"`{summary['arm']}`",
            write_interval(figures["psnr_transformed"]),
            f"{figures['floor_transformed']['mean']:.1f}",
            write_interval(figures["advantage_transformed"], "+"),
            write_interval(figures["advantage_aligned"], "+"),
            f"{summary['worst_advantage']:+.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def make_sentence(seed: int) -> str:
    """List the advantages at T(x) by phase."""
    parts = []
    for phase, when in (("init", "before training"), ("final", "after it")):
        figures = [one["figures"]["advantage_transformed"] for one in read_summaries(seed) if one["phase"] == phase]
        texts = [write_interval(figure, "+") for figure in figures]
        parts.append(f"{', '.join(texts[:-1])} and {texts[-1]} dB {when}")
    return ", ".join(parts)


def main() -> None:
    print("\n".join(make_table(0)))
    print(make_sentence(1))


if __name__ == "__main__":
    main()
