"""The pages in a real browser: they sort, filter, slide, go dark, ask nobody for anything, and are accessible."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from gradveil.reports import render_audit, render_comparison
from tests.reports.audit_records import CELLS, LONG, SCRIPT, make_pictures, make_record

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt-get install chromium")

HOSTILE = ((LONG, '"><img src=x onerror=alert(1)>', "some"), (SCRIPT + LONG, "final", "leaks"))
MANY = 2000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM)
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Write the pages that the tests open: name → address."""
    folder = tmp_path_factory.mktemp("pages")
    record, hostile = make_record(), make_record(cells=(*CELLS, *HOSTILE))
    many = make_record(images=MANY, cells=CELLS[:2])
    sources = {
        "audit": render_audit(record, make_pictures(record)),
        "hostile": render_audit(hostile, make_pictures(hostile)),
        "bare": render_audit(record, None),
        "comparison": render_comparison({"runs/one": record, SCRIPT: hostile}),
        "many": render_audit(many, make_pictures(many)),
    }
    for name, source in sources.items():
        (folder / f"{name}.html").write_text(source)
    return {name: (folder / f"{name}.html").as_uri() for name in sources}


class Tab:
    """One page, with all that it should not have done."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.note(request.url))

    def note(self, address: str) -> None:
        if not address.startswith(("data:", "file:")):
            self.complaints.append(f"request: {address}")

    def rows(self) -> int:
        return self.page.locator(".data tbody tr").count()

    def column(self, heading: str) -> list[str]:
        headings = self.page.locator(".data thead button").all_inner_texts()
        place = headings.index(heading) + 1
        return self.page.locator(f".data tbody td:nth-child({place})").all_inner_texts()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1400, "height": 900})
    yield made
    made.close()


@pytest.fixture
def tab(context: BrowserContext, pages: dict[str, str]) -> Iterator[Tab]:
    """Open the audit, and fail if anything went wrong by the end of the test."""
    opened = Tab(context.new_page())
    opened.page.goto(pages["audit"])
    yield opened
    assert opened.complaints == []


def test_the_table_sorts_by_pointer_and_by_keyboard(tab: Tab) -> None:
    heading = tab.page.get_by_role("button", name="beyond chance")
    cell = tab.page.locator("th", has=heading)
    heading.click()
    expect(cell).to_have_attribute("aria-sort", "descending")
    values = [float(value.replace("−", "-")) for value in tab.column("beyond chance") if value != "–"]
    assert len(values) == 47
    assert values == sorted(values, reverse=True)
    assert tab.column("beyond chance")[-1] == "–", "what has no value stands last"
    heading.press("Enter")
    expect(cell).to_have_attribute("aria-sort", "ascending")
    turned = tab.column("beyond chance")
    assert [float(value.replace("−", "-")) for value in turned[:-1]] == values[::-1]
    assert turned[-1] == "–"
    tab.page.get_by_role("button", name="class").press("Space")
    assert tab.column("class") == sorted(tab.column("class"))
    assert tab.page.locator("th[aria-sort]").count() == 1


def test_the_table_filters(tab: Tab) -> None:
    page = tab.page
    expect(page.locator("#count")).to_have_text("48 rows")
    page.get_by_role("combobox", name="Arm", exact=True).select_option(SCRIPT)
    expect(page.locator("#count")).to_have_text("12 of 48 rows")
    page.get_by_role("combobox", name="Phase", exact=True).select_option("final")
    assert set(tab.column("phase")) == {"final"}
    assert set(tab.column("arm")) == {SCRIPT}
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#count")).to_have_text("48 rows")
    page.get_by_role("combobox", name="Show", exact=True).select_option("failed")
    assert tab.rows() == 1
    assert tab.column("status") == ["failed"]
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("searchbox", name="Search", exact=True).press_sequentially("QUOTED")
    assert tab.rows() == 16
    page.get_by_role("searchbox", name="Search", exact=True).fill("no such thing")
    expect(page.locator("#count")).to_have_text("0 of 48 rows")


def test_the_slider_steps_through_the_attack(tab: Tab) -> None:
    film = tab.page.locator(".film").first
    slider, picture, step = film.get_by_role("slider"), film.locator(".frame"), film.locator("output")
    expect(step).to_have_text("80")
    last = picture.get_attribute("src")
    slider.press("ArrowLeft")
    expect(step).to_have_text("60")
    expect(slider).to_have_attribute("aria-valuetext", "step 60")
    assert picture.get_attribute("src") != last
    slider.press("Home")
    expect(step).to_have_text("0")
    film.get_by_role("button", name="Play").click()
    expect(step).to_have_text("80")
    expect(film.get_by_role("button", name="Play")).to_be_visible()
    assert picture.get_attribute("src") == last


def test_pictures_are_loaded_and_not_smoothed(tab: Tab) -> None:
    widths = tab.page.eval_on_selector_all("img", "images => images.map(image => image.naturalWidth)")
    assert set(widths) == {12}
    assert len(widths) > 100
    scaling = tab.page.eval_on_selector("img", "image => getComputedStyle(image).imageRendering")
    assert scaling == "pixelated"


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_dark_follows_the_system_until_the_button_says_otherwise(tab: Tab) -> None:
    page = tab.page
    button = page.get_by_role("button", name="Dark")
    white = background(page)
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    black = background(page)
    assert black != white == "rgb(255, 255, 255)"
    page.reload()
    assert background(page) == black, "the choice is remembered"
    page.get_by_role("button", name="Dark").click()
    assert background(page) == white


def test_the_system_can_ask_for_dark_and_for_calm(browser: Browser, pages: dict[str, str]) -> None:
    context = browser.new_context(color_scheme="dark", reduced_motion="reduce")
    page = context.new_page()
    page.goto(pages["audit"])
    assert background(page) != "rgb(255, 255, 255)"
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".play").first).to_be_hidden()
    context.close()


@pytest.mark.parametrize("name", ["audit", "hostile", "bare", "comparison", "many"])
@pytest.mark.parametrize("width", [400, 1400])
def test_pages_fit_their_window_and_do_nothing_else(
    name: str, width: int, context: BrowserContext, pages: dict[str, str]
) -> None:
    tab = Tab(context.new_page())
    tab.page.set_viewport_size({"width": width, "height": 800})
    tab.page.goto(pages[name])
    for details in tab.page.locator("summary").all():
        details.click()
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.complaints == []


def test_everything_is_reached_by_keyboard(tab: Tab) -> None:
    page = tab.page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Go to the verdict")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    reached = set()
    for _ in range(200):
        page.keyboard.press("Tab")
        reached.add(str(page.evaluate("document.activeElement.textContent || document.activeElement.id")))
    headings = page.locator(".data thead button").all_inner_texts()
    assert {*headings, "film-1", "search", "Play"} <= reached


def test_paper_gets_the_folded_parts_and_no_controls(tab: Tab, tmp_path: Path) -> None:
    page = tab.page
    page.get_by_role("button", name="Dark").click()
    page.emulate_media(media="print")
    assert background(page) == "rgb(255, 255, 255)"
    for selector in ("#filters", "nav", "#theme", ".slider input", ".data"):
        expect(page.locator(selector).first).to_be_hidden()
    page.pdf(path=tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
    folded = page.locator("details:not(.unprinted):not([open])")
    assert folded.count() == 0


def test_thousands_of_images_are_drawn_as_they_are_asked_for(context: BrowserContext, pages: dict[str, str]) -> None:
    tab = Tab(context.new_page())
    tab.page.goto(pages["many"])
    expect(tab.page.locator("#count")).to_have_text(f"{2 * MANY} rows")
    assert tab.rows() == 100
    tab.page.get_by_role("button", name="Show 100 more").click()
    assert tab.rows() == 200
    tab.page.get_by_role("button", name="image").click()
    assert tab.rows() == 100
    assert tab.column("image")[:3] == ["100", "100", "101"]
    assert tab.page.locator("img").count() < 200
    expect(tab.page.get_by_text("60 of 4000 rows")).to_be_visible()
    assert tab.complaints == []


@pytest.mark.parametrize("name", ["audit", "hostile", "bare", "comparison"])
@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (400, False)])
def test_no_barrier_is_found(name: str, width: int, dark: bool, context: BrowserContext, pages: dict[str, str]) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(pages[name])
    for details in page.locator("summary").all():
        details.click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert len(found.response["passes"]) > 20, "the checks ran"
