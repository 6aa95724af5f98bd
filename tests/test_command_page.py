"""The page of commands is what the command line says of itself."""

import click
import pytest
import typer
from typer.main import get_command

from gradveil.cli.commands import COMMANDS
from scripts.command_page import PAGE, describe, escape, make_page, write_prose


@pytest.fixture(scope="module")
def page() -> str:
    return make_page()


def test_the_committed_page_is_the_one_that_is_made(page: str) -> None:
    assert page == PAGE.read_text(), "run python -m scripts.command_page --write"


def test_every_command_has_a_section(page: str) -> None:
    assert [f"\n## gradveil {name}\n" in page for name in COMMANDS] == [True] * len(COMMANDS)
    assert "\n### gradveil transforms apply\n" in page


def make_command() -> click.Command:
    app = typer.Typer()

    @app.command(epilog="\b\nExamples:\n  run --size 3\n\nSizes: 1 | 2.")
    def run(
        place: str = typer.Argument(..., help="Where."),
        size: int = typer.Option(0, "--size", help="How large, *really*."),
        base: bool = typer.Option(True, "--base/--no-base", help="With a base.", rich_help_panel="Arms"),
        workers: int = typer.Option(7, "--workers", help="Processes."),
    ) -> None:
        """Run it."""

    return get_command(app)


def test_a_command_is_described_with_arguments_groups_defaults_and_examples() -> None:
    text = "\n".join(describe(make_command(), "run", 2))
    assert "| arguments | meaning |\n|---|---|\n| `PLACE` | Where. |" in text
    assert r"| `--size INTEGER` | How large, \*really\*. Default: `0`. |" in text
    assert "| arms | meaning |\n|---|---|\n| `--base`, `--no-base` | With a base. Default: `--base`. |" in text
    assert "| `--workers INTEGER` | Processes. |" in text
    assert "Examples:\n\n```sh\nrun --size 3\n```\n" in text
    assert r"Sizes: 1 \| 2." in text


def test_options_that_two_commands_share_are_listed_once() -> None:
    group = click.Group("group", {"one": make_command(), "two": make_command()})
    text = "\n".join(describe(group, "group", 2))
    assert text.count("How large") == 1
    assert (
        "### group two\n\nRun it.\n\n```text\ngroup two [OPTIONS] PLACE\n```\n\nOptions: those of `group one`.\n"
        in text
    )


def test_prose_is_joined_to_paragraphs() -> None:
    assert list(write_prose("One\ntwo.\n\nThree.")) == ["One two.\n", "Three.\n"]


def test_signs_in_backticks_stay() -> None:
    assert escape("`a*b` <c> *d*") == r"`a*b` &lt;c> \*d\*"
