"""The page says what the record says, in plain words, and nothing in the record can change what it does."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from gradveil.errors import DataError
from gradveil.reports import Visible, render_audit, render_comparison
from gradveil.reports.audit_page import make_overview
from gradveil.reports.audit_record import make_cells
from gradveil.reports.sealed_page import hash_source, is_unchanged, read_part, seals_in
from gradveil.results import SEAL
from tests.reports.audit_records import CELLS, CLASS_NAMES, LONG, SCRIPT, make_pictures, make_record


class Page(HTMLParser):
    """The text, the tags and the scripts of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.hidden = 0
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def render(show: Visible = "all", **changes: Any) -> str:
    record = make_record()
    return render_audit({**record, **changes}, make_pictures(record), show)


def text(show: Visible = "all", **changes: Any) -> str:
    return Page(render(show, **changes)).text


def test_the_verdict_is_the_heading_and_identification_comes_before_decibels() -> None:
    record = make_record()
    page = Page(render())
    heading = page.text.index(record["verdict"])
    lead = next(summary for summary in record["summaries"] if summary["outcome"] == "leaks")
    best = max(
        (summary["identification"] for summary in record["summaries"] if summary["outcome"] == "leaks"),
        key=lambda found: found["found"] / found["images"],
    )
    assert lead["identification"]
    rate = page.text.index(
        f"In {best['found']} of {best['images']} images the attacker's picture points to the right one"
    )
    assert heading < rate < page.text.index("dB")
    assert "chance is 1 in 20" in page.text


def test_every_outcome_is_named_marked_and_explained() -> None:
    page = text()
    for words in ("leaks", "some images leak", "no leak found at this strength", "undecided", "not trustworthy"):
        assert words in page
    assert "Expected number of false findings in this audit: at most 0.05." in page
    assert "It is not a statement that the images are safe." in page


@pytest.mark.parametrize("outcome", ["leaks", "some", "none-found", "undecided", "untrusted"])
def test_no_outcome_is_sold_as_privacy(outcome: str) -> None:
    record = make_record(cells=(("none", "init", outcome),))
    page = Page(render_audit(record, make_pictures(record))).text.lower()
    for promise in ("is private", "are private", "is safe", "no risk", "anonymous", "is protected"):
        assert promise not in page
    assert "this report does not constitute a determination of anonymity." in page


def test_undecided_and_untrusted_do_not_look_like_no_leak_found() -> None:
    style = read_part("page.css")
    assert ".tag.undecided, .tag.untrusted { border-style: dashed; }" in style
    colours = dict(re.findall(r"--(leaks|some|untrusted|undecided|none-found): (#\w+)", style[: style.index("@media")]))
    assert len(set(colours.values())) == 5
    red, green, blue = (int(colours["none-found"][place : place + 2], 16) for place in (1, 3, 5))
    assert green < blue, "no leak found is not green"
    assert red < blue


@pytest.mark.parametrize(
    ("outcome", "big"), [("leaks", True), ("none-found", True), ("undecided", False), ("untrusted", False)]
)
def test_a_figure_that_decides_nothing_does_not_stand_large(outcome: str, big: bool) -> None:
    """A large "0 of 8" beside "not trustworthy" would read as good news."""
    record = make_record(cells=(("none", "init", outcome),), failed=False)
    page = render_audit(record, None)
    found = record["summaries"][0]["identification"]
    assert (f'<p class="big"><b>{found["found"]}</b> of {found["images"]}' in page) == big
    assert ("Measured, but" in page) != big


def test_names_from_outside_stay_text() -> None:
    cells = (*CELLS[:3], (LONG, "init", "some"), (SCRIPT, '"><img src=x onerror=alert(1)>', "undecided"))
    record = make_record(cells=cells)
    source = render_audit(record, make_pictures(record))
    page = Page(source)
    assert SCRIPT not in source
    assert [attributes.get("type") for tag, attributes in page.tags if tag == "script"] == [
        *["application/json"] * 3,
        None,
    ]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert not [tag for tag, _ in page.tags if tag in ("iframe", "object", "link", "base")]
    assert SCRIPT in page.text
    assert LONG in page.text
    assert CLASS_NAMES[1] in page.text


def test_the_policy_allows_this_script_this_style_and_pictures_inside_only() -> None:
    page = Page(render())
    policies = [a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv")]
    assert policies == [
        f"default-src 'none'; img-src data:; style-src '{hash_source(read_part('page.css'))}'; "
        f"script-src '{hash_source(read_part('page.js'))}'; base-uri 'none'; form-action 'none'"
    ]
    addresses = [a.get(name) or "" for _, a in page.tags for name in ("src", "href") if name in a]
    assert addresses
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in addresses)
    assert not [a for _, a in page.tags if "style" in a], "the policy forbids style attributes"


def test_originals_are_announced_and_left_out_on_request() -> None:
    shown, rebuilt, bare = render(), render("rebuilt"), render("none")
    assert "This page shows private originals." in Page(shown).text
    assert "data:image" in shown
    assert "This page shows what an attacker rebuilt of private images." in Page(rebuilt).text
    assert "original, x" in shown
    assert "original, x" not in rebuilt
    assert 0 < rebuilt.count("data:image/png") < shown.count("data:image/png")
    assert "This page has no pictures." in Page(bare).text
    assert "data:image" not in bare
    assert "private originals" not in Page(bare).text
    record = make_record()
    assert "pictures.safetensors was not there" in Page(render_audit(record, None)).text


def test_what_the_attacker_was_told_and_used_stands_with_each_arm() -> None:
    page = text()
    assert "The attacker was told the defence, though not its random draws." in page
    assert "the strength of the noise" in page
    assert "Whole training: ε = 3.2 at δ = 1e-5, over 117 steps." in page
    assert "Unit: one training image more or less. Trust model: the client adds the noise itself" in page
    assert "the model is changed: batch normalisation becomes group normalisation" in page
    settings = {**make_record()["settings"], "knows_defence": False}
    assert "The attacker was not told the defence. A real one may know it." in text(settings=settings)


def test_an_arm_without_differential_privacy_has_no_epsilon() -> None:
    record = make_record(cells=(("none", "init", "leaks"),))
    page = Page(render_audit(record, make_pictures(record))).text
    assert "none, so no ε" in page
    assert "Trust model" not in page
    arms = {"none": {**record["arms"]["none"], "training": {"epsilon": None, "remark": "without noise"}}}
    page = Page(render_audit({**record, "arms": arms}, make_pictures(record))).text
    assert "Whole training: no ε can be stated (without noise)." in page


def test_the_annex_says_what_was_not_run() -> None:
    page = text()
    for risk in ("Reconstruction", "Membership inference", "Attribute inference", "Model inversion"):
        assert risk in page
    assert "6 images, 47 of 48 attacks with a result" in page
    hidden = text(settings={**make_record()["settings"], "labels": "hidden"})
    assert "class label only" in hidden
    assert "class label only" not in page


def test_provenance_names_command_versions_hardware_and_the_seal() -> None:
    record = make_record()
    page = text()
    for part in (record["command_line"], "seed 0", "a processor, 2 cores", "commit 0123456789ab", record[SEAL]):
        assert part in page
    assert "gradveil report --verify DIR" in page
    assert seals_in(render()) == [record[SEAL]]


def test_canaries_are_shown_only_where_there_are_any() -> None:
    card = {
        "arm": "none",
        "phase": "init",
        "attack": "fast",
        "image": 1,
        "text": "K7QX",
        "decoded": "K7QX",
        "read": True,
    }
    page = text(canaries=[card, {**card, "decoded": None, "read": False}])
    assert "1 of 2 could be read in the rebuilt picture." in page
    assert "Could cards be read?" not in text()


def test_cells_without_figures_are_drawn_too() -> None:
    record = make_record(cells=(("none", "init", "untrusted"),))
    empty: dict[str, Any] = {
        "figures": {},
        "share": None,
        "null": None,
        "threshold": None,
        "identification": None,
        "accuracy": None,
    }
    summary = {**record["summaries"][0], **empty, "worst": None, "failed": 6}
    rows = [
        {key: row[key] for key in ("arm", "phase", "attack", "image", "label")} | {"status": "failed"}
        for row in record["rows"]
    ]
    page = Page(render_audit({**record, "summaries": [summary], "rows": rows}, None)).text
    assert "not measured" in page
    assert "6 without a result" in page
    assert "Accuracy against leak" not in page


def test_several_attacks_stand_in_one_place_with_the_worst_first() -> None:
    record = make_record(cells=(("none", "init", "undecided"), ("none", "init", "leaks")))
    for summary, name in zip(record["summaries"], ("fast", "standard"), strict=True):
        summary["attack"] = name
    for place, row in enumerate(record["rows"]):
        row["attack"] = "fast" if place < 6 else "standard"
    overview = make_overview(make_cells(record))
    assert [cell.attack for cell in overview["lines"]["none"]["init"]] == ["standard", "fast"]
    assert "attacked by standard" in Page(render_audit(record, make_pictures(record))).text


def test_the_page_is_the_same_every_time_and_a_change_is_seen() -> None:
    page = render()
    assert page == render()
    assert is_unchanged(page)
    assert not is_unchanged(page.replace("leaks", "keeps", 1))


def test_a_record_of_another_kind_is_refused() -> None:
    with pytest.raises(DataError, match="no record of an audit"):
        render(command="search")


@pytest.mark.parametrize(
    "damage",
    [
        {"identification": {"found": 1}},
        {"figures": {"advantage_transformed": {"mean": "much"}}},
        {"null": {"low": "a", "high": 1.0}},
        {"images": "6"},
    ],
)
def test_damage_deep_inside_is_one_clear_error(damage: dict[str, Any]) -> None:
    record = make_record()
    summaries = [{**record["summaries"][0], **damage}, *record["summaries"][1:]]
    with pytest.raises(DataError, match=r"copy"):
        render(summaries=summaries)
    with pytest.raises(DataError, match=r"copy"):
        render_comparison({"a": record, "b": {**record, "summaries": summaries}})


def test_without_identification_the_share_leads() -> None:
    record = make_record()
    summaries = [{**summary, "identification": None} for summary in record["summaries"]]
    assert "images the attack reached the threshold" in text(summaries=summaries)
