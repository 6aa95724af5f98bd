"""What every page has in common."""

import json

from gradveil.reports import is_page, render_audit
from gradveil.reports.sealed_page import embed_json, is_unchanged, seals_in
from tests.reports.audit_records import make_record

HOSTILE = "</script><!-- & \u2028 \"'"


def test_embedded_json_cannot_end_its_element_and_reads_back() -> None:
    text = str(embed_json({"name": HOSTILE}))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": HOSTILE}


def test_pages_are_known_by_their_head() -> None:
    assert is_page(render_audit(make_record(), None))
    assert not is_page("<html></html>")


def test_a_page_without_a_seal_counts_as_changed() -> None:
    assert not is_unchanged("<html></html>")
    assert seals_in("<html></html>") == []
