"""Print the README's table and sentence from the audits that are kept in docs/measured/audit."""

from pathlib import Path
from typing import Any

from gradveil.results import read_sealed

FOLDER = Path(__file__).parents[1] / "docs" / "measured" / "audit"
HEAD = "| phase | arm | picked out of 20 | by x alone | advantage, T(x) | advantage, x | worst image | outcome |"


def read_audit(seed: int) -> dict[str, Any]:
    """Read what an audit with this seed found."""
    return read_sealed(FOLDER / f"seed-{seed}.json")


def write_interval(figure: dict[str, Any], sign: str = "") -> str:
    return f"{figure['mean']:{sign}.1f} ± {figure['high'] - figure['mean']:.1f}"


def write_rate(rate: dict[str, Any]) -> str:
    return f"{rate['found']} of {rate['images']}"


def make_table(seed: int) -> list[str]:
    """Make the lines of the table."""
    lines = [HEAD, "|---|---|---|---|---|---|---|---|"]
    for summary in read_audit(seed)["summaries"]:
        figures = summary["figures"]
        cells = [
            summary["phase"],
            f"`{summary['arm']}`",
            write_rate(summary["identification"]),
            write_rate(summary["identification_original"]),
            write_interval(figures["advantage_transformed"], "+"),
            write_interval(figures["advantage_original"], "+"),
            f"{summary['worst_advantage']:+.1f}",
            summary["outcome"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def make_sentence(seed: int) -> str:
    """Say how often the original alone was picked out after the training, arm by arm."""
    final = [one for one in read_audit(seed)["summaries"] if one["phase"] == "final"]
    parts = []
    for one in final:
        rate = one["identification_original"]
        bounds = f"95% interval {rate['low']:.0%} to {rate['high']:.0%}"
        parts.append(f"`{one['arm']}` {rate['found'] / rate['images']:.0%} of {rate['images']} ({bounds})")
    return ", ".join(parts)


def make_accuracies(seed: int) -> str:
    """List the accuracies of the arms."""
    texts = [f"{accuracy:.0%}" for accuracy in read_audit(seed)["test_accuracy"].values()]
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def main() -> None:
    print("\n".join(make_table(0)))
    print(make_sentence(1))
    print(make_accuracies(0))


if __name__ == "__main__":
    main()
