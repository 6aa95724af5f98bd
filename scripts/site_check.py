"""Check that no page of the built documentation loads anything from elsewhere: `python -m scripts.site_check site`."""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

LOADED = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "use": ("href", "xlink:href"),
}
"""The elements whose address a browser loads by itself, and the attributes with that address."""
NOT_LOADED = {"canonical", "next", "prev", "alternate"}
STYLE_ADDRESS = re.compile(r"""(?:url\(\s*|@import\s+)['"]?((?:https?:)?//[^'")\s]+)""")


class Loads(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element loads, and what its own style names."""
        values = {name: value or "" for name, value in attrs}
        if not NOT_LOADED & set(values.get("rel", "").split()):
            self.addresses += [values[name] for name in LOADED.get(tag, ()) if name in values]
        self.addresses += STYLE_ADDRESS.findall(values.get("style", ""))

    def handle_data(self, data: str) -> None:
        """Note what a style in the page names."""
        self.addresses += STYLE_ADDRESS.findall(data) if self.lasttag == "style" else []


def is_outside(address: str) -> bool:
    """Tell whether an address leads to another place than the site.

    >>> is_outside("//cdn.example/a.js"), is_outside("https://fonts.example"), is_outside("../a.js")
    (True, True, False)
    """
    return bool(urlsplit(address.strip()).netloc)


def outside_loads(site: Path) -> Iterator[str]:
    """Name every page and style sheet with what it loads from elsewhere."""
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            loads = Loads()
            loads.feed(path.read_text())
            found = loads.addresses
        elif path.suffix == ".css":
            found = STYLE_ADDRESS.findall(path.read_text())
        else:
            continue
        yield from (f"{path.relative_to(site)} loads {one}" for one in found if is_outside(one))


def main() -> None:
    """Print what is loaded from elsewhere and fail, or say that nothing is."""
    site = Path(sys.argv[1])
    pages = len(list(site.rglob("*.html")))
    if not pages:
        raise SystemExit(f"{site} holds no pages: build them with mkdocs first")
    found = list(outside_loads(site))
    if found:
        raise SystemExit("\n".join(found))
    print(f"{pages} pages load nothing from elsewhere")


if __name__ == "__main__":
    main()
