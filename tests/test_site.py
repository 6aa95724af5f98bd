"""The documentation site: every page is in the menu, every export on a page, nothing comes from elsewhere."""

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

import gradveil
from scripts.site_check import outside_loads
from scripts.start_picture import kept_figures, read_figures
from tests.test_public_surface import PACKAGES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text()
MENU = CONFIG.partition("\nnav:")[2]


def test_every_page_is_in_the_menu_once() -> None:
    listed = re.findall(r"[\w/.-]+\.md", MENU)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_the_start_page_and_the_choice_of_a_defence_come_first_and_results_last() -> None:
    sections = re.findall(r"^  - (.+?):(?: .*)?$", MENU, re.MULTILINE)
    assert sections[:2] == ["Start", "Which defence shall I use?"]
    assert sections[-1] == "Measured"
    assert "measured/" not in MENU.partition("  - Measured:")[0]


@pytest.mark.parametrize("page", [DOCS / "index.md", ROOT / "README.md"])
def test_the_first_link_is_to_the_choice_of_a_defence(page: Path) -> None:
    first = re.search(r"\]\(([^)]+)\)", page.read_text())
    assert first is not None
    assert Path(first[1]).name == "which-defence.md"


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_has_an_api_page(name: str) -> None:
    assert f"::: gradveil.{name}\n" in (DOCS / "api" / f"{name}.md").read_text()
    assert f"]({name}.md)" in (DOCS / "api" / "index.md").read_text()


def documented(package: str) -> Iterator[str]:
    """Name the constants of a package that a docstring follows."""
    for path in (ROOT / "src" / "gradveil" / package).glob("*.py"):
        body = ast.parse(path.read_text()).body
        for node, following in pairwise(body):
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                yield from (target.id for target in targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("name", PACKAGES)
def test_exported_constants_have_docstrings(name: str) -> None:
    package = import_module(f"gradveil.{name}")
    constants = {one for one in package.__all__ if not callable_by_name(getattr(package, one))}
    assert constants - set(documented(name)) == set()


def callable_by_name(member: object) -> bool:
    return inspect.isclass(member) or inspect.isfunction(member)


def test_the_picture_of_the_start_page_shows_the_kept_audit() -> None:
    assert read_figures() == kept_figures()
    assert {one["picked_out"] for one in read_figures()} == {True}, "the text beside the picture says so"


def test_the_version_agrees_everywhere() -> None:
    assert f"\nversion: {gradveil.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == gradveil.__version__


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_of_the_root_texts_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / name).read_text()):
        assert (ROOT / target).exists(), f"{name} links to {target}"


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<p style="background: url(https://a.example/b.png)">',
        '<style>@import "https://a.example/b.css";</style>',
    ],
)
def test_a_page_that_loads_from_elsewhere_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(text)
    assert len(list(outside_loads(tmp_path))) == 1


def test_links_and_own_files_are_no_loads(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<a href="https://a.example">a</a><script src="../b.js"></script>')
    (tmp_path / "style.css").write_text("a { background: url(../b.png) }")
    assert list(outside_loads(tmp_path)) == []


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mkdocstrings") is None, reason="needs pip install 'gradveil[docs]'")
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert list(outside_loads(tmp_path)) == []
    for name in PACKAGES:
        page = (tmp_path / "api" / f"{name}.html").read_text()
        exports = import_module(f"gradveil.{name}").__all__
        missing = [one for one in exports if not re.search(rf'id="gradveil\.{name}\.(?:{one}\.)?{one}"', page)]
        assert missing == [], f"gradveil.{name}: not on its page"
