"""Copy tables of measured pages into the pages that discuss them, so that no figure there is typed by hand.

A page says which table it shows, and the script puts it between the two marks:

    <!-- table 1 of measured/batches/batches.md -->
    <!-- end of table -->
"""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
MARKED = re.compile(r"(<!-- table (\d+) of (\S+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def fill(page: Path) -> str:
    """Return the text of a page with its tables as the measured pages have them."""

    def copy(found: re.Match[str]) -> str:
        start, number, source, end = found.groups()
        tables = [one.group() for one in TABLE.finditer((page.parent / source).read_text())]
        if not 1 <= int(number) <= len(tables):
            raise SystemExit(f"{page.name} asks for table {number} of {source}, which has {len(tables)}")
        return start + tables[int(number) - 1] + end

    return MARKED.sub(copy, page.read_text())


def pages() -> list[Path]:
    """List the pages that show tables of others."""
    return [page for page in sorted(DOCS.glob("*.md")) if MARKED.search(page.read_text())]


def main() -> int:
    for page in pages():
        page.write_text(fill(page))
        print(page.relative_to(DOCS.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
