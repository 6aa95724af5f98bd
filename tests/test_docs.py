"""The Python of the documentation runs as it is printed, at its own size."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["attacks.md", "defences.md", "search.md"])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert blocks(page)
    names: dict[str, object] = {"__name__": page}
    for number, block in enumerate(blocks(page)):
        exec(compile(block, f"{page}, example {number + 1}", "exec"), names)


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+\.(?:md|png))", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
