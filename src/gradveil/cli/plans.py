"""How much work a command has before it, and about how long it takes: `--dry-run`, and a line before the work."""

from rich.console import Console

from gradveil.cli.options import count, print_json
from gradveil.cli.progress import say_seconds
from gradveil.machine import Estimate
from gradveil.results import record


def say_plan(estimate: Estimate) -> str:
    """Say in a line how much work it is, and how long it may take."""
    work = ", ".join(name_count(noun, number) for noun, number in estimate.counts.items() if number)
    seconds = say_seconds(estimate.seconds)
    return f"At most {work}: {seconds if seconds.startswith('under') else f'about {seconds}'} here."


def name_count(noun: str, number: int) -> str:
    """Write a number with what it counts, whose words are in the plural.

    >>> name_count("cells", 1), name_count("attacks on one image", 2000)
    ('1 cell', '2,000 attacks on one image')
    """
    first, _, rest = noun.partition(" on ")
    return " on ".join(filter(None, [count(number, first.removesuffix("s")), rest]))


def print_plan(console: Console, as_json: bool, command: str, estimate: Estimate) -> None:
    """Print what a dry run found."""
    if as_json:
        print_json(record(f"{command} --dry-run", {}, estimate.to_record()))
    console.print(say_plan(estimate), highlight=False)
    for note in estimate.notes:
        console.print(note, highlight=False)
