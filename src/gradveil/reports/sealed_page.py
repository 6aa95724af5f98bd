"""Pages in one file: what a browser may do with them, and how a later change is seen."""

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gradveil import __version__

OPEN_SEAL = "0" * 64
SEAL_TAG = '<meta name="gradveil-page-sha256" content="{}">'
RECORD_TAG = '<meta name="gradveil-audit-sha256" content="{}">'
GENERATOR = '<meta name="generator" content="gradveil '


def render_page(template: str, records: list[str], context: dict[str, Any]) -> str:
    """Render a template of this package and seal it; `records` are the seals of the records that it shows.

    The policy in its head allows this style and this script, by their hashes, and pictures inside the page; nothing
    else runs and nothing is fetched.
    """
    style, script = read_part("page.css"), read_part("page.js")
    page = (
        environment()
        .get_template(template)
        .render(
            **context,
            style=Markup(style),
            script=Markup(script),
            policy=write_policy(style, script),
            version=__version__,
            record_tags=Markup("\n".join(RECORD_TAG.format(Markup.escape(seal)) for seal in records)),
            seal_tag=Markup(SEAL_TAG.format(OPEN_SEAL)),
        )
    )
    return page.replace(SEAL_TAG.format(OPEN_SEAL), SEAL_TAG.format(hash_text(page)), 1)


def write_policy(style: str, script: str | None = None) -> str:
    """Write the Content-Security-Policy of a page: this style, this script if any, pictures inside it, nothing else."""
    scripts = "" if script is None else f" script-src '{hash_source(script)}';"
    return (
        f"default-src 'none'; img-src data:; style-src '{hash_source(style)}';{scripts} base-uri 'none'; "
        "form-action 'none'"
    )


def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("gradveil.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["json"] = embed_json
    return made


@cache
def read_part(name: str) -> str:
    return files("gradveil.reports").joinpath("templates", name).read_text(encoding="utf-8")


def hash_source(text: str) -> str:
    """Return the hash of an inline style or script as a Content-Security-Policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def hash_text(page: str) -> str:
    return hashlib.sha256(page.encode()).hexdigest()


def embed_json(value: Any) -> Markup:
    r"""Write JSON that no text in it can end: `<`, `>` and `&` are escaped.

    >>> print(embed_json("</script>"))
    "\u003c/script\u003e"
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def is_page(text: str) -> bool:
    """Tell whether gradveil wrote this page."""
    return GENERATOR in text


def is_unchanged(page: str) -> bool:
    """Tell whether a page is as it was written."""
    found = re.search(SEAL_TAG.format("([0-9a-f]{64})"), page)
    return found is not None and hash_text(page.replace(found[0], SEAL_TAG.format(OPEN_SEAL), 1)) == found[1]


def seals_in(page: str) -> list[str]:
    """List the seals of the records that a page says it shows."""
    return re.findall(RECORD_TAG.format("([0-9a-f]{64})"), page)
