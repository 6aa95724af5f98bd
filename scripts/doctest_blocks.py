"""Let the API pages show the examples of docstrings as code; mkdocs.yml names this extension of griffe."""

from typing import Any

import griffe

PROMPT = ">>>"


def fence_examples(text: str) -> str:
    """Put a fence around every run of lines from a prompt to the next blank line."""
    lines: list[str] = []
    inside = False
    for line in [*text.split("\n"), ""]:
        if not inside and line.lstrip().startswith(PROMPT):
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join(lines[:-1])


class DoctestBlocks(griffe.Extension):
    """Changes each docstring when it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fence_examples(obj.docstring.value)
