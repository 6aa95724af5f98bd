"""What mkdocs does to every page; mkdocs.yml names this file."""

import re
from typing import Any

CELL_CODE = re.compile(r"<code>[^<]*</code>(?=(?:(?!<td).)*?</td>)", re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    r"""Show a bar in the code of a table's cell as it is meant.

    GitHub needs it written as \|, and Python's Markdown prints the backslash.
    """
    return CELL_CODE.sub(lambda found: found[0].replace(r"\|", "|"), html)
