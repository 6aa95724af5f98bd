"""What every page has in common."""

import json
import re
from pathlib import Path

import pytest

from gradveil.reports import is_page, render_audit, render_comparison, render_search_page, sealed_page
from gradveil.reports.sealed_page import embed_json, hash_source, is_unchanged, seals_in
from gradveil.search import Records, SearchSettings, make_status
from tests.reports.audit_records import make_record

HOSTILE = "</script><!-- & \u2028 \"'"


def test_embedded_json_cannot_end_its_element_and_reads_back() -> None:
    text = str(embed_json({"name": HOSTILE}))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": HOSTILE}


def list_pages() -> dict[str, str]:
    """Render one page of every kind."""
    records = Records()
    records.take({"study": SearchSettings(training=None, weights="given").to_record()})
    record = make_record()
    return {
        "audit": render_audit(record, None),
        "comparison": render_comparison({"a": record, "b": record}),
        "search": render_search_page(make_status(records)),
    }


def test_every_template_that_is_a_page_is_rendered_here() -> None:
    templates = Path(sealed_page.__file__).parent / "templates"
    heads = {path.stem for path in templates.glob("*.html") if "<html" in path.read_text()}
    pages = {path.stem for path in templates.glob("*.html") if '{% extends "page.html" %}' in path.read_text()}
    assert (heads | pages) - {"page"} == set(list_pages())


@pytest.mark.parametrize("name", list_pages())
def test_every_page_forbids_all_but_its_own_style_and_script(name: str) -> None:
    page = list_pages()[name]
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert " style=" not in page
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        parts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert len(parts) == policy.count(rule)
        for part in parts:
            assert f"{rule} '{hash_source(part)}'" in policy
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_pages_are_known_by_their_head() -> None:
    assert is_page(render_audit(make_record(), None))
    assert not is_page("<html></html>")


def test_a_page_without_a_seal_counts_as_changed() -> None:
    assert not is_unchanged("<html></html>")
    assert seals_in("<html></html>") == []
