"""Print the leak of collaborative training, round by round, from the observations in docs/measured/federated."""

import json
from pathlib import Path
from typing import Any

from scripts.readme_table import write_interval

FOLDER = Path(__file__).parents[1] / "docs" / "measured" / "federated"
HEAD = "| arm | a client's update | round | n | advantage, T(x) | aligned x | worst image | accuracy at the end |"


def read_observations() -> list[dict[str, Any]]:
    """Read every observation, in the order of their names."""
    return [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]


def make_lines() -> list[str]:
    """Make the lines of the table."""
    lines = [HEAD, "|---|---|---|---|---|---|---|---|"]
    for observation in read_observations():
        for summary in observation["summaries"]:
            figures = summary["figures"]
            cells = [
                f"`{summary['arm']}`",
                observation["update"],
                summary["phase"].removeprefix("round-"),
                str(summary["images"] - summary["failed"]),
                write_interval(figures["advantage_transformed"], "+"),
                write_interval(figures["advantage_aligned"], "+"),
                f"{summary['worst_advantage']:+.1f}",
                f"{100 * observation['test_accuracy']:.1f}%",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    print("\n".join(make_lines()))


if __name__ == "__main__":
    main()
